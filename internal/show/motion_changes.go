package show

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/plain"
)

type motionChangeJSON struct {
	Delete   bool        `json:"delete"`
	Key      *string     `json:"key,omitempty"`
	Key64    []byte      `json:"key_base64,omitempty"`
	RangeEnd []byte      `json:"range_end_base64,omitempty"`
	Value    *string     `json:"value,omitempty"`
	Value64  []byte      `json:"value_base64,omitempty"`
	Was      []*keyValue `json:"was"`            // when it opened
	Lost     bool        `json:"lost,omitempty"` // was is not known: it was compacted away
	leaseJSON
	KeepsValue bool        `json:"keeps_value,omitempty"`
	KeepsLease bool        `json:"keeps_lease,omitempty"`
	Copies     *placed     `json:"copies,omitempty"` // the version whose value a change of names puts
	Now        []*keyValue `json:"now"`
}

// leaseJSON is a lease that a put names.
type leaseJSON struct {
	Lease      string `json:"lease,omitempty"`        // in hexadecimal digits, as in etcd
	TTL        int64  `json:"lease_ttl,omitempty"`    // in seconds, when the motion opened
	Keeper     string `json:"lease_keeper,omitempty"` // author of the request that granted it
	KeeperName string `json:"lease_keeper_name,omitempty"`
}

func leaseJSONOf(id, ttl int64, keeper []byte, name string) (x leaseJSON) {
	if id == 0 {
		return x
	}
	return leaseJSON{fmt.Sprintf("%x", uint64(id)), ttl, hex.EncodeToString(keeper), name}
}

// leaseText reports what a put with a lease means.
func leaseText(id, ttl int64, keeper []byte, name string) string {
	who := "unknown, as the lease is not there"
	if len(keeper) > 0 {
		if who = short(keeper); name != "" {
			who = Line(name) + " (" + who + ")"
		}
	}
	return fmt.Sprintf("with lease %x, of %v: it is deleted when the lease ends, which its keeper can put off: %s", uint64(id), time.Duration(ttl)*time.Second, who)
}

func motionChangeJSONOf(c *aweighv1.MotionChange) motionChangeJSON {
	x := motionChangeJSON{Delete: c.Delete, RangeEnd: c.RangeEnd, Was: kvsJSON(c.Was), Lost: c.Lost, Now: kvsJSON(c.Now)}
	x.leaseJSON = leaseJSONOf(c.Lease, c.Ttl, c.Keeper, c.KeeperName)
	x.KeepsValue, x.KeepsLease = c.KeepsValue, c.KeepsLease
	x.Key, x.Key64 = bytesField(c.Key)
	if c.Copies != nil {
		x.Copies = placedAt(c.Copies.Key, c.Copies.Revision)
	} else if !c.Delete {
		x.Value, x.Value64 = bytesField(c.Value)
	}
	return x
}

// changes writes the effects of a motion, as a difference to the content when it
// opened.
func (p Printer) changes(m *aweighv1.Motion) error {
	if len(m.Changes) == 0 {
		return nil
	}
	switch {
	case stands(m):
		fmt.Fprintln(p.Out, "it would change:")
	case m.Fate == "carried":
		fmt.Fprintln(p.Out, "it changed:")
	default:
		fmt.Fprintln(p.Out, "it would have changed:")
	}
	for _, c := range m.Changes {
		name := Key(c.Key)
		if len(c.RangeEnd) > 0 {
			name += " … " + plain.Quote(string(c.RangeEnd))
		}
		fmt.Fprintf(p.Out, "  %s\n", Line(name))
		p.before(m, c)
		switch {
		case c.Delete:
			fmt.Fprintln(p.Out, "    + (nothing)")
		case c.KeepsValue:
			fmt.Fprintln(p.Out, "    + (the value that it has)")
		case c.Copies != nil:
			fmt.Fprintf(p.Out, "    + (%s)\n", copied(c.Copies.Key, c.Copies.Revision))
		default:
			fmt.Fprintf(p.Out, "    + %s\n", text(c.Value))
		}
		if c.Lease != 0 {
			fmt.Fprintf(p.Out, "      %s\n", leaseText(c.Lease, c.Ttl, c.Keeper, c.KeeperName))
		}
		if c.KeepsLease {
			fmt.Fprintln(p.Out, "      with the lease that it has")
		}
		if stands(m) {
			p.since(c)
		}
	}
	_, err := fmt.Fprintln(p.Out)
	return err
}

// before writes the content when a motion opened.
func (p Printer) before(m *aweighv1.Motion, c *aweighv1.MotionChange) {
	was := c.Was
	if c.Lost && stands(m) && m.Doomed == "" {
		was = c.Now // it is as it was
	} else if c.Lost {
		fmt.Fprintln(p.Out, "    - (compacted away)")
		return
	}
	for _, kv := range was {
		fmt.Fprintf(p.Out, "    - %s\n", held(c, kv))
	}
	if len(was) == 0 {
		fmt.Fprintln(p.Out, "    - (nothing)")
	}
}

// since writes the changes there after a motion opened.
func (p Printer) since(c *aweighv1.MotionChange) {
	if c.Lost {
		return // nothing to compare with
	}
	was, now := make(map[string]int64), make(map[string]bool)
	for _, kv := range c.Was {
		was[string(kv.Key)] = kv.ModRevision
	}
	for _, kv := range c.Now {
		now[string(kv.Key)] = true
		if was[string(kv.Key)] != kv.ModRevision && told(c.Was, kv.Key) {
			fmt.Fprintf(p.Out, "    ! changed since: %s\n", held(c, kv))
		}
	}
	for _, kv := range c.Was {
		if !now[string(kv.Key)] && told(c.Now, kv.Key) {
			fmt.Fprintf(p.Out, "    ! deleted since: %s\n", held(c, kv))
		}
	}
}

// mostHeld is how many keys of a range a node returns; there may be more.
const mostHeld = 100

// told reports whether a list of keys would have a key in it, had it been there.
func told(list []*aweighv1.KeyValue, key []byte) bool {
	return len(list) < mostHeld || bytes.Compare(key, list[len(list)-1].Key) <= 0
}

// held is the content of a key, with its name if there may be others.
func held(c *aweighv1.MotionChange, kv *aweighv1.KeyValue) string {
	name := ""
	if len(c.RangeEnd) > 0 {
		name = Key(kv.Key) + " = "
	}
	lease := ""
	if kv.Lease != 0 {
		lease = fmt.Sprintf(", lease %x", uint64(kv.Lease))
	}
	return fmt.Sprintf("%s%s  (revision %d%s)", Line(name), text(kv.Value), kv.ModRevision, lease)
}
