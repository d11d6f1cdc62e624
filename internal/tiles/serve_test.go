package tiles_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/internal/tiles"
)

// TestFilesAreServed: a reader of the log gets the checkpoint, tiles and bundles, and nothing else of the directory
// or of what is around it.
func TestFilesAreServed(t *testing.T) {
	var l log
	dir := filepath.Join(t.TempDir(), "log")
	l.add(t, 300)
	l.keep(t, dir)
	for name, text := range map[string]string{".new": "staged", "other": "other", "../secret": "secret"} { // order-free
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../secret", filepath.Join(dir, "tile", "link")); err != nil {
		t.Fatal(err)
	}
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tiles.Serve(ctx, at, dir) }()
	url := "http://" + at.Addr().String() + "/"
	get := func(method, name string) (*http.Response, []byte) {
		req, err := http.NewRequestWithContext(ctx, method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.URL.Path = "/" + name // as it is, also with dots
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, body
	}
	for _, name := range []string{"checkpoint", "tile/0/000", "tile/0/001.p/44", "tile/1/000.p/1", "tile/entries/000", "tile/entries/001.p/44"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		resp, got := get(http.MethodGet, name)
		if resp.StatusCode != http.StatusOK || !bytes.Equal(got, want) {
			t.Errorf("%s: %s, %d bytes of %d", name, resp.Status, len(got), len(want))
		}
		if keeps := strings.Contains(resp.Header.Get("Cache-Control"), "immutable"); keeps != (name != "checkpoint") {
			t.Errorf("%s: Cache-Control: %s", name, resp.Header.Get("Cache-Control"))
		}
	}
	for _, name := range []string{"", ".", "tile", "tile/", "tile/0", "tile/0/", ".lock", ".new", "other", "index.html", "tile/0/002", "tile/link", "tile/../other", "../secret", "tile/../../secret", "tile//0/000", "tile/0/000\x00"} {
		if resp, _ := get(http.MethodGet, name); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%q: %s", name, resp.Status)
		}
	}
	if resp, _ := get(http.MethodPost, "checkpoint"); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %s", resp.Status)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
