module github.com/parley-hub/parley/interop/terminal

go 1.26.0
