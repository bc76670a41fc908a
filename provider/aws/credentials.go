package aws

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
)

// credentialTimeout bounds one question for credentials.
const credentialTimeout = 5 * time.Second

// defaultCredentials are those that AWS's own tools would take. They are fetched when the first message goes out: from
// the environment, shared files, a web identity, or the address that the container's environment names; from the
// machine's metadata service only when the settings allow for it. The environment's proxy is not used.
func defaultCredentials(cfg *Config) (aws.CredentialsProvider, error) {
	metadata := imds.ClientDisabled
	if cfg.InstanceMetadata {
		metadata = imds.ClientEnabled
	}
	// The SDK's own client, because it takes the authorities that AWS_CA_BUNDLE names.
	client := awshttp.NewBuildableClient().WithTimeout(credentialTimeout).WithTransportOptions(func(t *http.Transport) {
		t.DisableKeepAlives, t.Proxy = true, nil
		if cfg.Web.Proxy != nil {
			t.Proxy = http.ProxyURL(cfg.Web.Proxy)
		}
	})
	found, err := config.LoadDefaultConfig(context.Background(),
		config.WithRegion(cfg.Region), config.WithEC2IMDSClientEnableState(metadata),
		config.WithHTTPClient(client),
	)
	if err != nil {
		return nil, errors.New("credentials: the environment or a shared file of AWS cannot be read")
	}
	return found.Credentials, nil
}
