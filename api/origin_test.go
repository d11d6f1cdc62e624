package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/fence"
)

func TestWebPagesOfOthersAreKeptOut(t *testing.T) {
	for _, c := range []struct {
		listen, host, origin string
		want                 int
	}{
		{"127.0.0.1:7177", "127.0.0.1:7177", "", 204},
		{"127.0.0.1:7177", "localhost:7177", "", 204},
		{"127.0.0.1:7177", "LOCALHOST.:1", "", 204},
		{"127.0.0.1:7177", "[::1]:7177", "", 204},
		{"127.0.0.1:7177", "[::1]", "", 204},
		{"127.0.0.1:7177", "rebound.example:7177", "", 403},
		{"127.0.0.1:7177", "localhost.example:7177", "", 403},
		{"127.0.0.1:7177", "127.0.0.1.example:7177", "", 403},
		{"127.0.0.1:7177", "192.0.2.1:7177", "", 403},
		{"127.0.0.1:7177", "", "", 403},
		{"192.0.2.1:7177", "192.0.2.1:7177", "", 204},
		{"registry.example:7177", "Registry.Example:7177", "", 204},
		{"registry.example:7177", "other.example:7177", "", 403},
		{"0.0.0.0:7177", "192.0.2.1:7177", "", 204},
		{":7177", "192.0.2.1:7177", "", 204},
		{"0.0.0.0:7177", "rebound.example:7177", "", 403},
		{"127.0.0.1:7177", "127.0.0.1:7177", "http://127.0.0.1:7177", 204},
		{"127.0.0.1:7177", "127.0.0.1:7177", "http://127.0.0.1:8000", 403},
		{"127.0.0.1:7177", "127.0.0.1:7177", "https://example.org", 403},
		{"127.0.0.1:7177", "127.0.0.1:7177", "null", 403},
	} {
		refused := 0
		count := func(k authn.Kind, r authn.Reason) {
			if k == authn.None && (r == authn.Origin) == (c.origin != "") && (r == authn.Host || r == authn.Origin) {
				refused++
			}
		}
		answers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
		h := fenced(fence.Hostname(c.listen), (&authn.Row{Count: count}).Fenced, answers)
		r := httptest.NewRequest("POST", "/aweigh.v1.Node/Put", nil)
		r.Host = c.host
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want || (c.want == 403) != strings.HasPrefix(w.Body.String(), "aweigh: this API answers") {
			t.Errorf("%+v: got %d %q", c, w.Code, w.Body)
		}
		if (refused == 1) != (c.want == 403) || refused > 1 {
			t.Errorf("%+v: counted %d times", c, refused)
		}
	}
}
