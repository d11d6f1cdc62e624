// Package testwitness is an honest witness of transparency logs, for tests (https://c2sp.org/tlog-witness). It verifies
// consistency with package tlog, and signs with package ed25519, so that it shares no code with what it tests. It takes
// every log, and checks no signature of logs.
package testwitness

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// Witness serves add-checkpoint. It is safe for concurrent use.
type Witness struct {
	Name string

	key  ed25519.PrivateKey
	mu   sync.Mutex
	last map[string]tlog.Tree // by origin, as it cosigned them
}

// New returns a witness whose key follows from its name.
func New(name string) *Witness {
	seed := sha256.Sum256([]byte(name))
	return &Witness{Name: name, key: ed25519.NewKeyFromSeed(seed[:]), last: make(map[string]tlog.Tree)}
}

func (w *Witness) typed() []byte { return append([]byte{0x04}, w.key.Public().(ed25519.PublicKey)...) }

func (w *Witness) hash() []byte {
	h := sha256.Sum256(append([]byte(w.Name+"\n"), w.typed()...))
	return h[:4]
}

// VKey returns the verifier key.
func (w *Witness) VKey() string {
	return fmt.Sprintf("%s+%x+%s", w.Name, w.hash(), base64.StdEncoding.EncodeToString(w.typed()))
}

// Sign returns the line of a note by which the witness signs a checkpoint's text.
func (w *Witness) Sign(text string) string {
	at := time.Now().Unix()
	sig := ed25519.Sign(w.key, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", at, text))
	raw := append(binary.BigEndian.AppendUint64(w.hash(), uint64(at)), sig...)
	return "— " + w.Name + " " + base64.StdEncoding.EncodeToString(raw) + "\n"
}

// ServeHTTP answers add-checkpoint.
func (w *Witness) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	head, note, _ := strings.Cut(string(raw), "\n\n")
	text, _, signed := strings.Cut(note, "\n\n")
	lines := strings.Split(text, "\n")
	var old int64
	if n, _ := fmt.Sscanf(head, "old %d", &old); err != nil || n != 1 || !signed || len(lines) < 3 || !strings.HasSuffix(r.URL.Path, "/add-checkpoint") {
		to.WriteHeader(http.StatusBadRequest)
		return
	}
	var proof tlog.TreeProof
	for _, l := range strings.Split(head, "\n")[1:] {
		h, err := tlog.ParseHash(l)
		if err != nil {
			to.WriteHeader(http.StatusBadRequest)
			return
		}
		proof = append(proof, h)
	}
	var now tlog.Tree
	now.N, err = strconv.ParseInt(lines[1], 10, 64)
	if err == nil {
		now.Hash, err = tlog.ParseHash(lines[2])
	}
	if err != nil || old > now.N {
		to.WriteHeader(http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.last[lines[0]]
	switch {
	case old != last.N, old > 0 && old == now.N && last.Hash != now.Hash:
		to.Header().Set("Content-Type", "text/x.tlog.size")
		to.WriteHeader(http.StatusConflict)
		fmt.Fprintf(to, "%d\n", last.N)
	case old == 0 && len(proof) > 0, old > 0 && tlog.CheckTree(proof, now.N, now.Hash, last.N, last.Hash) != nil:
		to.WriteHeader(http.StatusUnprocessableEntity)
	default:
		w.last[lines[0]] = now
		fmt.Fprint(to, w.Sign(text+"\n"))
	}
}
