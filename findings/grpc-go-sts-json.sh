#!/bin/sh
# The package credentials/sts of grpc-go 1.85.0 says that it exchanges tokens by RFC 8693, whose request is a form
# (section 2.1). It sends its parameters as a JSON object under `application/json`, and where no scope is set it asks for
# that of Google's cloud platform, so that an authorization server of the RFC cannot read the request, and would not know
# the scope. It concerns every service that would give its gRPC calls exchanged tokens. Fails if the behaviour changes.
set -eu && folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > go.mod <<'MOD'
module f
go 1.24.0
require google.golang.org/grpc v1.85.0
MOD
cat > main.go <<'GO'
package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/sts"
)

func main() {
	var kind, body string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read, _ := io.ReadAll(r.Body)
		kind, body = r.Header.Get("content-type"), string(read)
		fmt.Fprint(w, `{"access_token":"a.b.c","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":60}`)
	}))
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	os.WriteFile("root.pem", root, 0600)
	os.Setenv("SSL_CERT_FILE", "root.pem")
	os.WriteFile("subject.jwt", []byte("e30.e30.c2ln"), 0600)
	exchange, _ := sts.NewCredentials(sts.Options{
		TokenExchangeServiceURI: server.URL + "/token",
		SubjectTokenPath:        "subject.jwt",
		SubjectTokenType:        "urn:ietf:params:oauth:token-type:jwt",
		Audience:                "https://api.example",
	})
	tls := credentials.TLSInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}
	call := credentials.NewContextWithRequestInfo(context.Background(), credentials.RequestInfo{AuthInfo: tls})
	given, err := exchange.GetRequestMetadata(call, "https://api.example")
	var members map[string]any
	fmt.Println(kind, body, given, err)
	isJSON := kind == "application/json" && json.Unmarshal([]byte(body), &members) == nil
	isGoogles := members["scope"] == "https://www.googleapis.com/auth/cloud-platform"
	if !isJSON || members["subject_token"] != "e30.e30.c2ln" || !isGoogles || err != nil {
		os.Exit(1)
	}
}
GO
export GOFLAGS=-mod=mod GOMODCACHE="$folder/modules"
go run . 2> go.log || { cat go.log; exit 1; }
