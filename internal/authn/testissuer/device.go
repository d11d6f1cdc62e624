package testissuer

import (
	"fmt"
	"maps"
	"net/http"
	"time"
)

// device is the state of the device authorization grant (RFC 8628).
type device struct {
	pending int    // polls that are answered by authorization_pending
	code    string // the error that ends the grant; empty: it succeeds
	lacks   bool   // answers lack the ID token
	grants  int
	refresh string // the refresh token that is good
	polls   int
	change  map[string]any
}

// Grant makes the next device authorizations succeed after some polls, with ID tokens that have other claims. A code is
// the error that ends them instead.
func (i *Issuer) Grant(pending int, code string, others map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.device.pending, i.device.code, i.device.change = pending, code, others
}

// OmitIDToken makes the answers of the token endpoint lack the ID token.
func (i *Issuer) OmitIDToken(omit bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.device.lacks = omit
}

// Polls is how often the token endpoint was asked.
func (i *Issuer) Polls() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.device.polls
}

func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("client_id") == "" {
		reply(w, http.StatusBadRequest, map[string]any{"error": "invalid_client"})
		return
	}
	reply(w, http.StatusOK, map[string]any{
		"device_code": "device-code", "user_code": "WDJB-MJHT", "verification_uri": i.URL + "/activate",
		"verification_uri_complete": i.URL + "/activate?code=WDJB-MJHT", "expires_in": 60, "interval": 1,
	})
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	client, _, ok := r.BasicAuth()
	if !ok {
		client = r.FormValue("client_id")
	}
	i.mu.Lock()
	d := &i.device
	d.polls++
	fail := ""
	switch r.FormValue("grant_type") {
	case "urn:ietf:params:oauth:grant-type:device_code":
		if d.pending > 0 {
			d.pending--
			fail = "authorization_pending"
		} else {
			fail = d.code
		}
	case "refresh_token":
		if d.refresh == "" || r.FormValue("refresh_token") != d.refresh {
			fail = "invalid_grant"
		}
	default:
		fail = "unsupported_grant_type"
	}
	if fail != "" {
		i.mu.Unlock()
		reply(w, http.StatusBadRequest, map[string]any{"error": fail, "error_description": "as the test\x1b[2J wants"})
		return
	}
	d.grants++
	d.refresh = fmt.Sprintf("refresh-%d", d.grants)
	out := map[string]any{
		"access_token": fmt.Sprintf("access-%d", d.grants), "token_type": "Bearer",
		"refresh_token": d.refresh, "expires_in": 3600,
	}
	lacks, others := d.lacks, maps.Clone(d.change)
	i.mu.Unlock()
	if !lacks {
		out["id_token"] = i.Sign("device", i.Claims(client, time.Now(), others))
	}
	reply(w, http.StatusOK, out)
}
