module count

go 1.21
