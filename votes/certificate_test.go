package votes

import (
	"bytes"
	"errors"
	"testing"

	"github.com/aweigh/aweigh/quorum"
)

func TestCertificatesTravelAlone(t *testing.T) {
	w := newWorld(t, Ed25519, 4)
	c := w.Certificate(w.certificate(finalizeA, 0, 1, 3))
	got, err := DecodeCertificate(c.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Check(w.Keyring); err != nil {
		t.Error(err)
	}
	if q := got.Quorum(); q.Subject != finalizeA || len(q.Signatures) != 3 {
		t.Errorf("came back as %v", q)
	}
	stale, odd := got, got
	stale.Domain.Epoch--
	if err := stale.Check(w.Keyring); !errors.Is(err, ErrStale) {
		t.Errorf("of the epoch before: %v", err)
	}
	odd.Format++
	if err := odd.Check(w.Keyring); !errors.Is(err, ErrMalformed) {
		t.Errorf("of another format: %v", err)
	}
	light := w.Certificate(w.certificate(finalizeA, 0, 1))
	if err := light.Check(w.Keyring); !errors.Is(err, ErrTooLight) {
		t.Errorf("of two anchors: %v", err)
	}
}

func FuzzDecodeCertificate(f *testing.F) {
	w := newWorld(f, Ed25519, 4)
	for _, s := range []quorum.Subject{notarizeA, nullify7} {
		f.Add(w.Certificate(w.certificate(s, 0, 1, 2)).Encode())
	}
	f.Add(Certificate{}.Encode())
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := DecodeCertificate(raw)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("unexpected error %v", err)
			}
			return
		}
		if !bytes.Equal(c.Encode(), raw) {
			t.Errorf("%x encodes again as %x", raw, c.Encode())
		}
		_ = c.Check(w.Keyring) // must not panic
	})
}
