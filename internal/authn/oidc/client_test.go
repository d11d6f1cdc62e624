package oidc

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/authn/testissuer"
	"github.com/aweigh/aweigh/internal/testshort"
)

// TestSlowAnswersEnd: an answer that stops half-way takes a bounded time, also if no caller closes it.
func TestSlowAnswersEnd(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	i := testissuer.New(t)
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	i.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = w.Write([]byte("{"))
		_ = http.NewResponseController(w).Flush()
		<-hold
		return true
	})
	client, err := HTTPClient(i.CA)
	if err != nil {
		t.Fatal(err)
	}
	client.Transport.(*bounded).within = 2 * time.Second
	resp, err := client.Get(i.URL)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(resp.Body); !errors.Is(err, context.DeadlineExceeded) || string(text) != "{" {
		t.Errorf("%q, %v", text, err)
	}
}
