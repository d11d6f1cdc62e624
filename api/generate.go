package api

//go:generate protoc -I . --go_out=. --go_opt=module=github.com/aweigh/aweigh/api --connect-go_out=. --connect-go_opt=module=github.com/aweigh/aweigh/api aweigh/v1/aweigh.proto
