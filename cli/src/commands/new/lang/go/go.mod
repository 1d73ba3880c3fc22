module tool

go 1.24
