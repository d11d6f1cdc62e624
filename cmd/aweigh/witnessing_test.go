package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/internal/testwitness"
)

// witnessing serves a witness with the name of its argument until interrupted, and prints the line of a policy about
// it.
func witnessing() {
	w := testwitness.New(os.Args[1])
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(err, "listening")
	fmt.Printf("witness %s %s http://%s/x\n", w.Name, w.VKey(), l.Addr())
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt)
	go func() { must.OK(http.Serve(l, w), "serving") }()
	<-end
}
