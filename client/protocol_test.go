package client

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
)

// quick is a node that answers at once.
type quick struct {
	aweighv1connect.UnimplementedNodeHandler
}

func (quick) Put(context.Context, *connect.Request[aweighv1.PutRequest]) (*connect.Response[aweighv1.PutResponse], error) {
	return connect.NewResponse(&aweighv1.PutResponse{
		Header: &aweighv1.Header{Network: make([]byte, 32), Scope: make([]byte, 32), Height: 1, Revision: 2},
		Uid:    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	}), nil
}

// BenchmarkProtocols compares the cost of a small Put, both sides together.
func BenchmarkProtocols(b *testing.B) {
	h2 := new(http.Protocols)
	h2.SetUnencryptedHTTP2(true)
	h1 := new(http.Protocols)
	h1.SetHTTP1(true)
	for _, x := range []struct {
		name      string
		protocols *http.Protocols
		options   []connect.ClientOption
	}{
		{"grpc", h2, []connect.ClientOption{connect.WithGRPC()}},
		{"connect", h2, nil},
		{"connect/http1", h1, nil},
	} {
		b.Run(x.name, func(b *testing.B) {
			mux := http.NewServeMux()
			mux.Handle(aweighv1connect.NewNodeHandler(quick{}, connect.WithCompressMinBytes(64<<10)))
			s := httptest.NewUnstartedServer(mux)
			s.Config.Protocols = new(http.Protocols)
			s.Config.Protocols.SetUnencryptedHTTP2(true)
			s.Config.Protocols.SetHTTP1(true)
			s.Start()
			defer s.Close()
			t := &http.Transport{Protocols: x.protocols, DialContext: (&net.Dialer{}).DialContext, MaxIdleConnsPerHost: 100}
			c := aweighv1connect.NewNodeClient(&http.Client{Transport: t}, s.URL, x.options...)
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					req := &aweighv1.PutRequest{Key: make([]byte, 32), Value: make([]byte, 256), Once: NewOnce(nil)}
					if _, err := c.Put(context.Background(), connect.NewRequest(req)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
