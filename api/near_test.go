package api

import (
	"context"
	"testing"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// TestDecisionsAreTakenFromThisMachineOnly: a client that reaches an open API
// must not govern with the anchor's key.
func TestDecisionsAreTakenFromThisMachineOnly(t *testing.T) {
	for caller, may := range map[string]bool{
		"127.0.0.1:5": true, "127.9.9.9:5": true, "[::1]:5": true, "[::ffff:127.0.0.1]:5": true,
		"192.0.2.1:5": false, "[2001:db8::1]:5": false, "0.0.0.0:5": false, "localhost:5": false, "127.0.0.1": false, "": false, "@": false,
	} {
		if err := near(caller); (err == nil) != may {
			t.Errorf("%q: %v", caller, err)
		}
	}
	s := &service{} // without a node: nothing may come that far; the requests have no caller
	if _, err := s.Govern(context.Background(), connect.NewRequest(&aweighv1.GovernRequest{})); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("Govern: %v", err)
	}
	if _, err := s.Apply(context.Background(), connect.NewRequest(&aweighv1.ApplyRequest{})); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("Apply: %v", err)
	}
}
