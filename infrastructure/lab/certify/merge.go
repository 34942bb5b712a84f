package certify

import (
	"context"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// management is Azure Resource Manager. The version of its API is the first one with merges on request.
const (
	management   = "https://management.azure.com"
	mergeVersion = "2026-04-01-preview"
)

// Merger returns a function that requests the merge of a container's ranges, for Options.Merge. The
// identity needs the right to write the account with this resource id (/subscriptions/...), and the
// account must allow merges.
func Merger(identity azcore.TokenCredential, resourceID string, options *policy.ClientOptions) func(ctx context.Context, database, container string) error {
	pipeline := runtime.NewPipeline("feedbox-certify", "1", runtime.PipelineOptions{
		PerRetry: []policy.Policy{runtime.NewBearerTokenPolicy(identity, []string{management + "/.default"}, nil)},
	}, options)
	return func(ctx context.Context, database, container string) error {
		url := management + "/" + strings.Trim(resourceID, "/") + "/sqlDatabases/" + database + "/containers/" + container + "/partitionMerge?api-version=" + mergeVersion
		req, err := runtime.NewRequest(ctx, http.MethodPost, url)
		if err != nil {
			return err
		}
		if err := runtime.MarshalAsJSON(req, map[string]bool{"isDryRun": false}); err != nil {
			return err
		}
		reply, err := pipeline.Do(req)
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		if !runtime.HasStatusCode(reply, http.StatusOK, http.StatusAccepted) { // the script waits for the end
			return runtime.NewResponseError(reply)
		}
		return nil
	}
}
