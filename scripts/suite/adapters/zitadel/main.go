// zitadel/oidc as a server, with the clients of the suite. The library leaves to its storage which client may act for which user.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

type suite struct {
	Issuer, Address, Cert, Key, Ca, Idp, Keys string
	// The secret of each client, and the APIs of which it may ask.
	Secrets                        map[string]string
	Asks                           map[string][]string
	Agents, Users, Targets, Scopes []string
}

type client struct{ *storage.Client }

func (client) AuthMethod() oidc.AuthMethod         { return oidc.AuthMethodBasic }
func (client) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }
func (client) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeClientCredentials, oidc.GrantTypeTokenExchange}
}

type credentials struct {
	oidc.JWTTokenRequest
	client string
}

func (one *credentials) GetClientID() string { return one.client }

type token struct {
	op.TokenRequest
	client string
	until  time.Time
}

// The storage of the library's example, with other clients and tokens.
type store struct {
	*storage.Storage
	suite  suite
	users  *rp.IDTokenVerifier
	lock   sync.Mutex
	tokens map[string]token
}

func (s *store) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	secret, found := s.suite.Secrets[id]
	if !found {
		return nil, errors.New("no such client")
	}
	return client{storage.WebClient(id, secret)}, nil
}

func (s *store) AuthorizeClientIDSecret(_ context.Context, id, secret string) error {
	if one, found := s.suite.Secrets[id]; !found || one != secret {
		return errors.New("no such client")
	}
	return nil
}

func (s *store) ClientCredentials(ctx context.Context, id, secret string) (op.Client, error) {
	if err := s.AuthorizeClientIDSecret(ctx, id, secret); err != nil {
		return nil, err
	}
	return s.GetClientByClientID(ctx, id)
}

func (s *store) ClientCredentialsTokenRequest(_ context.Context, id string, scopes []string) (op.TokenRequest, error) {
	for _, scope := range scopes {
		if !slices.Contains(s.suite.Scopes, scope) {
			return nil, oidc.ErrInvalidScope()
		}
	}
	request := oidc.JWTTokenRequest{Subject: id, Audience: s.suite.Targets[:1], Scopes: scopes}
	return &credentials{request, id}, nil
}

func (s *store) CreateAccessToken(_ context.Context, request op.TokenRequest) (string, time.Time, error) {
	until := time.Now().Add(5 * time.Minute)
	if exchange, is := request.(op.TokenExchangeRequest); is {
		if exp, has := exchange.GetExchangeSubjectTokenClaims()["exp"].(float64); has && int64(exp) < until.Unix() {
			until = time.Unix(int64(exp), 0)
		}
	}
	id := uuid.NewString()
	s.lock.Lock()
	defer s.lock.Unlock()
	s.tokens[id] = token{request, request.(interface{ GetClientID() string }).GetClientID(), until}
	return id, until, nil
}

func (s *store) SetIntrospectionFromToken(_ context.Context, answer *oidc.IntrospectionResponse, id, _, asking string) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	one, found := s.tokens[id]
	mine := func(api string) bool { return slices.Contains(s.suite.Asks[asking], api) }
	if !found || one.until.Before(time.Now()) || !slices.ContainsFunc(one.GetAudience(), mine) {
		return errors.New("not active")
	}
	answer.Subject, answer.Audience, answer.Scope = one.GetSubject(), one.GetAudience(), one.GetScopes()
	answer.ClientID, answer.Expiration = one.client, oidc.FromTime(one.until)
	if exchange, is := one.TokenRequest.(op.TokenExchangeRequest); is && exchange.GetExchangeActor() != "" {
		answer.Actor = &oidc.ActorClaims{Subject: exchange.GetExchangeActor()}
	}
	return nil
}

func (s *store) RevokeToken(_ context.Context, id, _, asking string) *oidc.Error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if one, found := s.tokens[id]; found && one.client != asking {
		return oidc.ErrInvalidClient()
	}
	delete(s.tokens, id)
	return nil
}

func (s *store) VerifyExchangeSubjectToken(ctx context.Context, text string, kind oidc.TokenType) (string, string, map[string]any, error) {
	if kind != oidc.JWTTokenType {
		return "", "", nil, errors.New("not a token of users")
	}
	claims, err := rp.VerifyIDToken[*oidc.IDTokenClaims](ctx, text, s.users)
	if err != nil {
		return "", "", nil, err
	}
	return text, claims.Subject, claims.Claims, nil
}

func (s *store) VerifyExchangeActorToken(context.Context, string, oidc.TokenType) (string, string, map[string]any, error) {
	return "", "", nil, errors.New("not a token of actors")
}

func (s *store) ValidateTokenExchangeRequest(_ context.Context, request op.TokenExchangeRequest) error {
	if request.GetRequestedTokenType() == "" {
		request.SetRequestedTokenType(oidc.AccessTokenType)
	}
	id, user := request.GetClientID(), request.GetExchangeSubject()
	if !slices.Contains(s.suite.Agents, id) || request.GetExchangeActor() != id || !slices.Contains(s.suite.Users, user) {
		return oidc.ErrAccessDenied()
	}
	for _, target := range append(request.GetResourses(), request.GetAudience()...) {
		if !slices.Contains(s.suite.Targets, target) {
			return oidc.ErrInvalidTarget()
		}
	}
	had, _ := request.GetExchangeSubjectTokenClaims()["scope"].(string)
	for _, scope := range request.GetScopes() {
		if !slices.Contains(strings.Fields(had), scope) {
			return oidc.ErrInvalidScope()
		}
	}
	return nil
}

func (s *store) GetPrivateClaimsFromTokenExchangeRequest(_ context.Context, request op.TokenExchangeRequest) (map[string]any, error) {
	return map[string]any{"act": map[string]any{"sub": request.GetExchangeActor()}}, nil
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	var told suite
	if err := json.Unmarshal([]byte(os.Getenv("SUITE")), &told); err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(told.Ca))
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	keys := rp.NewRemoteKeySet(web, told.Keys)
	users := rp.NewIDTokenVerifier(told.Idp, told.Issuer, keys, rp.WithSupportedSigningAlgorithms("ES256"))
	store := &store{Storage: storage.NewStorage(storage.NewUserStore(told.Issuer)), suite: told, users: users, tokens: map[string]token{}}
	config := &op.Config{AuthMethodPost: true, CodeMethodS256: true, CryptoKey: [32]byte{1}, CryptoKeyId: "1"}
	provider := must(op.NewProvider(config, store, op.StaticIssuer(told.Issuer)))
	log.Print("Listening")
	log.Fatal(http.ListenAndServeTLS(told.Address, told.Cert, told.Key, provider))
}
