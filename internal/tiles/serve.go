package tiles

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/net/netutil"
)

// Limits of Serve.
const (
	maxConns  = 1024
	maxHeader = 16 << 10 // bytes
	headTime  = 10 * time.Second
	fileTime  = time.Minute // for a request and its answer
	endTime   = 2 * time.Second
)

// Serve serves the checkpoint, the tiles and the bundles of a directory by HTTP, and nothing else of it, until ctx
// ends. Then requests in progress get two seconds. It takes over the listener.
func Serve(ctx context.Context, l net.Listener, dir string) error {
	root, err := os.OpenRoot(dir) // whose files lead nowhere else
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer root.Close()
	s := &http.Server{
		Handler: files(root.FS()), MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headTime, ReadTimeout: headTime, WriteTimeout: fileTime, IdleTimeout: fileTime,
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(netutil.LimitListener(l, maxConns)) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if err := s.Shutdown(ending); err != nil {
		return s.Close()
	}
	return nil
}

// files answers with the files that readers of a log know (https://c2sp.org/tlog-tiles). A tile never changes, and a
// checkpoint does.
func files(of fs.FS) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, kind, keep := strings.TrimPrefix(r.URL.Path, "/"), "text/plain; charset=utf-8", "no-cache"
		if strings.HasPrefix(name, "tile/") {
			kind, keep = "application/octet-stream", "public, max-age=31536000, immutable"
		}
		switch info, err := fs.Stat(of, name); {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "files are read alone", http.StatusMethodNotAllowed)
		case name != named && !strings.HasPrefix(name, "tile/"), err != nil, !info.Mode().IsRegular():
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Cache-Control", keep)
			http.ServeFileFS(w, r, of, name)
		}
	})
}
