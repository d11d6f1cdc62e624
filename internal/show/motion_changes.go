package show

import (
	"bytes"
	"fmt"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
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
	Now      []*keyValue `json:"now"`
}

func motionChangeJSONOf(c *aweighv1.MotionChange) motionChangeJSON {
	x := motionChangeJSON{Delete: c.Delete, RangeEnd: c.RangeEnd, Was: kvsJSON(c.Was), Lost: c.Lost, Now: kvsJSON(c.Now)}
	x.Key, x.Key64 = bytesField(c.Key)
	if !c.Delete {
		x.Value, x.Value64 = bytesField(c.Value)
	}
	return x
}

// changes writes what a motion would do, as a difference to what was there when it
// opened.
func (p Printer) changes(m *aweighv1.Motion) error {
	if len(m.Changes) == 0 {
		return nil
	}
	switch m.Fate {
	case "open":
		fmt.Fprintln(p.Out, "it would change:")
	case "carried":
		fmt.Fprintln(p.Out, "it changed:")
	default:
		fmt.Fprintln(p.Out, "it would have changed:")
	}
	for _, c := range m.Changes {
		name := Key(c.Key)
		if len(c.RangeEnd) > 0 {
			name += fmt.Sprintf(" … %q", c.RangeEnd)
		}
		fmt.Fprintf(p.Out, "  %s\n", Line(name))
		p.before(m, c)
		if c.Delete {
			fmt.Fprintln(p.Out, "    + (nothing)")
		} else {
			fmt.Fprintf(p.Out, "    + %s\n", text(c.Value))
		}
		if m.Fate == "open" {
			p.since(c)
		}
	}
	_, err := fmt.Fprintln(p.Out)
	return err
}

// before writes what was there when a motion opened.
func (p Printer) before(m *aweighv1.Motion, c *aweighv1.MotionChange) {
	was := c.Was
	if c.Lost && m.Fate == "open" && m.Doomed == "" {
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

// since writes what was changed there after a motion opened.
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

// mostHeld is how many keys of a range a node tells; there may be more.
const mostHeld = 100

// told reports whether a list of keys would have a key in it, had it been there.
func told(list []*aweighv1.KeyValue, key []byte) bool {
	return len(list) < mostHeld || bytes.Compare(key, list[len(list)-1].Key) <= 0
}

// held is what a key holds, with its name if there may be others.
func held(c *aweighv1.MotionChange, kv *aweighv1.KeyValue) string {
	name := ""
	if len(c.RangeEnd) > 0 {
		name = Key(kv.Key) + " = "
	}
	return fmt.Sprintf("%s%s  (revision %d)", Line(name), text(kv.Value), kv.ModRevision)
}
