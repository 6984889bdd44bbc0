#!/bin/sh
# Go's libraries for JWTs refuse a whole key set for one key of a type that they do not know. RFC 9964 (May 2026) gives
# ML-DSA keys the type AKP; a set that has one beside an ES256 key, as an issuer publishes while it moves, verifies no token
# any more, not even one signed with ES256: go-jose 4.1.9 (JSONWebKeySet), lestrrat-go/jwx 3.4.0 (jwk.Parse) and keyfunc
# 3.9.2 for golang-jwt return an error. RFC 7517 section 5 says to ignore keys of unknown types. go-oidc 3.21.0, which
# fetches through go-jose, skips the key. So an issuer's first such key ends logins and calls of services built on the
# three, and nothing in a test with today's keys shows it. Fails if the behaviour changes.
set -eu && folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export GOPATH="$folder/go"
cat > main.go <<'GO'
package main

import (
	"context"; "crypto/ecdsa"; "crypto/elliptic"; "crypto/rand"; "encoding/base64"; "encoding/json"
	"fmt"; "net/http"; "net/http/httptest"; "os"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/lestrrat-go/jwx/v3/jwk"
)

func main() {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	signer, _ := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "ec"}}, nil)
	signed, _ := signer.Sign([]byte(`{"sub":"s"}`))
	token, _ := signed.CompactSerialize()
	old, _ := json.Marshal(jose.JSONWebKey{Key: &key.PublicKey, KeyID: "ec", Algorithm: "ES256", Use: "sig"})
	pub := base64.RawURLEncoding.EncodeToString(make([]byte, 1312)) // the length of an ML-DSA-44 key; none reads it
	added := `{"kty":"AKP","alg":"ML-DSA-44","kid":"pq","use":"sig","pub":"` + pub + `"}`
	unexpected := false
	for _, set := range []string{`{"keys":[` + string(old) + `]}`, `{"keys":[` + string(old) + `,` + added + `]}`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, set) }))
		var parsed jose.JSONWebKeySet
		_, fetched := oidc.NewRemoteKeySet(context.Background(), server.URL).VerifySignature(context.Background(), token)
		_, jwx := jwk.Parse([]byte(set))
		_, function := keyfunc.NewJWKSetJSON(json.RawMessage(set))
		both := len(set) > 1000
		for name, err := range map[string]error{"go-jose": json.Unmarshal([]byte(set), &parsed), "jwx": jwx, "keyfunc": function} {
			fmt.Println(name, "with AKP:", both, "error:", err)
			unexpected = unexpected || (err != nil) != both
		}
		fmt.Println("go-oidc with AKP:", both, "error:", fetched)
		unexpected = unexpected || fetched != nil
	}
	if unexpected {
		os.Exit(1)
	}
}
GO
{
  go mod init finding && go get github.com/MicahParks/keyfunc/v3@v3.9.2 github.com/coreos/go-oidc/v3/oidc@v3.21.0 \
    github.com/go-jose/go-jose/v4@v4.1.9 github.com/lestrrat-go/jwx/v3/jwk@v3.4.0
} > log 2>&1 || { cat log; exit 1; }
go run .
