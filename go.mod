module gladhand

go 1.26
