package client

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/testshort"
)

// TestOtherServersAreNamed: an address at which something else than a node's API answers stands in the error, once.
func TestOtherServersAreNamed(t *testing.T) {
	for name, serve := range map[string]func(http.Handler) *httptest.Server{
		"HTTP/1": httptest.NewServer,
		"TLS":    httptest.NewTLSServer,
		"resets": func(http.Handler) *httptest.Server { return httptest.NewServer(http.HandlerFunc(reset)) },
	} {
		t.Run(name, func(t *testing.T) {
			if name != "HTTP/1" { // a write is tried again for seconds, as it may have been done
				testshort.Skip(t)
			}
			t.Parallel()
			srv := serve(http.NotFoundHandler())
			defer srv.Close()
			address := srv.Listener.Addr().String()
			c, err := Dial(address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, read := c.Status(t.Context())
			_, write := c.Put(t.Context(), &aweighv1.PutRequest{Key: []byte("/a"), Once: &aweighv1.Once{}})
			for call, err := range map[string]error{"a read": read, "a write": write} {
				if !errors.Is(err, ErrUnreachable) {
					t.Fatalf("%s: %v", call, err)
				}
				text := err.Error()
				if strings.Count(text, address) != 1 || strings.Count(text, "no node's API is at this address") != 1 {
					t.Errorf("%s: %s", call, text)
				}
			}
		})
	}
}

// reset breaks the connection of a request off, without an answer.
func reset(w http.ResponseWriter, _ *http.Request) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
}
