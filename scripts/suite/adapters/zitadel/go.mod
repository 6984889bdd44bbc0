module suite

go 1.26.0

require (
	github.com/google/uuid v1.6.0
	github.com/zitadel/oidc/v3 v3.52.0
)
