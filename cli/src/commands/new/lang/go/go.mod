module local/tool

go 1.24
