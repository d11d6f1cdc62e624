package signer

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/votes"
)

// TestMain makes this test the signing program: it does what SIGNER_DOES says.
func TestMain(m *testing.M) {
	does := os.Getenv("SIGNER_DOES")
	if does == "" {
		os.Exit(m.Run())
	}
	key := seeded()
	switch last := os.Args[len(os.Args)-1]; {
	case does == "fail":
		fmt.Fprintln(os.Stderr, "the card is not there")
		os.Exit(3)
	case does == "chatter":
		os.Stdout.Write(make([]byte, 2*most))
	case last == "public" && does == "nonsense":
		fmt.Println("rsa:AAAA")
	case last == "public":
		fmt.Println(key.Public())
	case last == "sign":
		var message bytes.Buffer
		message.ReadFrom(os.Stdin)
		if does == "other" {
			message.WriteString("and more")
		}
		signature, err := key.Signer().SignMessage(message.Bytes())
		if err != nil {
			panic(err)
		}
		os.Stdout.Write(signature)
	}
}

func seeded() votes.PrivateKey {
	k, err := votes.KeyFromSeed(votes.Ed25519, bytes.Repeat([]byte{7}, 32))
	if err != nil {
		panic(err)
	}
	return k
}

func TestProgramsSign(t *testing.T) {
	vote := votes.MotionVote{Network: aweigh.Sum([]byte("n")), Scope: aweigh.Sum([]byte("n")), Motion: aweigh.Sum([]byte("m")), Choice: votes.Approve}
	for _, c := range []struct {
		does         string
		open, signed error
		says         string
	}{
		{"well", nil, nil, ""},
		{"other", nil, votes.ErrForged, ""},
		{"nonsense", ErrProgram, nil, ""},
		{"fail", ErrProgram, nil, "the card is not there\n"},
		{"chatter", ErrProgram, nil, ""},
	} {
		t.Run(c.does, func(t *testing.T) {
			t.Setenv("SIGNER_DOES", c.does)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var says bytes.Buffer
			p, err := Open(ctx, os.Args[0]+" --slot 1", &says)
			if !errors.Is(err, c.open) || says.String() != c.says {
				t.Fatalf("%v, %q", err, says.String())
			}
			if err != nil {
				return
			}
			b, err := votes.SignMotionBallot(p, vote, "yes")
			if !errors.Is(err, c.signed) || err == nil && b.Voter != seeded().Public().ID() {
				t.Fatalf("%v: %v", b, err)
			}
		})
	}
	if _, err := Open(t.Context(), "  ", nil); !errors.Is(err, ErrProgram) {
		t.Errorf("no program: %v", err)
	}
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, ErrProgram) {
		t.Errorf("a program that is not there: %v", err)
	}
}

// opensslSigner is the example of docs/ballots.md.
const opensslSigner = `#!/bin/sh
case "$2" in
public) printf 'ed25519:%s\n' "$(openssl pkey -in "$1" -pubout -outform DER | tail -c 32 | base64 | tr '+/' '-_' | tr -d '=')" ;;
sign) t=$(mktemp) && cat >"$t" && openssl pkeyutl -sign -inkey "$1" -rawin -in "$t"; rm -f "$t" ;;
esac
`

// TestOpenSSLCanSign: nothing of this project is needed to sign.
func TestOpenSSLCanSign(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("no openssl here")
	}
	dir := t.TempDir()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file, script := filepath.Join(dir, "key.pem"), filepath.Join(dir, "signer")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte(opensslSigner), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := Open(ctx, script+" "+file, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if p.Public().ID() != seeded().Public().ID() {
		t.Fatalf("key %s", p.Public())
	}
	if _, err := votes.SignMotionBallot(p, votes.MotionVote{Choice: votes.Reject}, ""); err != nil {
		t.Fatal(err)
	}
}
