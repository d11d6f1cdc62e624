// Command verify-wasm verifies proofs of what keys hold, as "aweigh verify" does, in any host of WebAssembly with WASI
// preview 1: a browser, Node.js, or a runtime of another language. It needs no file and no network.
//
//	GOOS=wasip1 GOARCH=wasm go build -tags noverbs -trimpath -ldflags='-s -w' -o verify.wasm ./cmd/verify-wasm
package main

import (
	"os"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, time.Now)) }
