module github.com/parley-hub/parley/interop/openapi

go 1.26

require (
	github.com/pb33f/libopenapi v0.28.0
	github.com/pb33f/libopenapi-validator v0.6.4
)

require (
	github.com/bahlo/generic-list-go v0.2.0 // indirect
	github.com/buger/jsonparser v1.1.1 // indirect
	github.com/pb33f/jsonpath v0.1.2 // indirect
	github.com/pb33f/ordered-map/v2 v2.3.0 // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.2 // indirect
	go.yaml.in/yaml/v4 v4.0.0-rc.2 // indirect
	golang.org/x/text v0.29.0 // indirect
)
