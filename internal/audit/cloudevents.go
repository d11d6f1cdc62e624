package audit

import (
	"fmt"

	"github.com/aweigh/aweigh"
)

// event is a change as a CloudEvent (CloudEvents 1.0.2, JSON format).
type event struct {
	SpecVersion string  `json:"specversion"`
	ID          string  `json:"id"`     // index of the entry: unique in the source
	Source      string  `json:"source"` // the lineage of a scope
	Type        string  `json:"type"`
	Subject     string  `json:"subject,omitempty"` // the key
	Time        string  `json:"time"`
	ContentType string  `json:"datacontenttype"`
	Data        *Change `json:"data"`
}

// CloudEvent is the line of a change as a CloudEvent of the network.
func CloudEvent(network aweigh.NetworkID, c *Change) ([]byte, error) {
	e := event{
		SpecVersion: "1.0", ID: fmt.Sprint(c.Index), Source: "urn:aweigh:" + network.String() + ":" + c.Scope,
		Type: "aweigh.lineage." + c.Class, Time: c.Time, ContentType: "application/json", Data: c,
	}
	if c.Key != nil {
		e.Subject = *c.Key
	} else if len(c.KeyBase64) > 0 {
		e.Subject = fmt.Sprintf("%q", c.KeyBase64)
	}
	return Encode(e)
}
