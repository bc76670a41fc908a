package sandbox

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"time"

	"dispatcher/provider/aws/awstest"
	"dispatcher/provider/bird/birdtest"
	"dispatcher/provider/httpapi/httpapitest"
	"dispatcher/provider/infobip/infobiptest"
	"dispatcher/provider/plivo/plivotest"
	"dispatcher/provider/sinch/sinchtest"
	"dispatcher/provider/telnyx/telnyxtest"
	"dispatcher/provider/twilio/twiliotest"
	"dispatcher/provider/vonage/vonagetest"
)

func awsAccount(s *secrets, callback string) account {
	const region, id = "eu-central-1", "AKIASANDBOX000000000"
	const topic = "arn:aws:sns:" + region + ":000000000000:sandbox"
	keyFile, key := s.text("secret_access_key")
	certificate, signer := snsSigner(s)
	return account{
		shape: awstest.New(
			awstest.Config{
				Region:          region,
				AccessKeyID:     id,
				SecretAccessKey: key,
				Topic:           topic,
				Callback:        callback,
				Key:             signer,
			},
		),
		settings: map[string]any{
			"region": region, "access_key_id": id, "secret_access_key_file": keyFile,
			"from": "Sandbox", "configuration_set": "sandbox",
			"sns_topics": []string{topic}, "sns_certificate_files": []string{certificate},
		},
	}
}

// Sizes of the signing key and certificate of the sandbox's notification service.
const (
	signerBits = 2048
	signerLife = 10 * 365 * 24 * time.Hour
)

// snsSigner returns the file of the certificate with which an account's topic signs, and its key.
func snsSigner(s *secrets) (certificate string, key *rsa.PrivateKey) {
	_, text := s.file("sns_key", func() string {
		fresh, err := rsa.GenerateKey(rand.Reader, signerBits)
		if err != nil {
			s.fail(err)
			return ""
		}
		return string(
			pem.EncodeToMemory(
				&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(fresh)},
			),
		)
	})
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		s.fail(
			errors.New(
				"the key of an AWS topic cannot be read; remove its file and that of its " +
					"certificate",
			),
		)
		return "", nil
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		s.fail(err)
		return "", nil
	}
	certificate, _ = s.file("sns_certificate", func() string {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sns.sandbox"},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(signerLife),
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			s.fail(err)
			return ""
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	})
	return certificate, key
}

func birdAccount(s *secrets, _ string) account {
	keyFile, key := s.text("access_key")
	signingFile, signing := s.text("signing_key")
	return account{
		shape: birdtest.New(birdtest.Config{AccessKey: key, SigningKey: signing}),
		settings: map[string]any{
			"access_key_file":   keyFile,
			"signing_key_files": []string{signingFile},
			"from":              "Sandbox",
		},
	}
}

// httpapiAccount is an account at a Kannel, with the settings that docs/providers/httpapi.md gives
// for it.
func httpapiAccount(s *secrets, _ string) account {
	const user = "dispatcher"
	passwordFile, password := s.text("password")
	secretFile, secret := s.text("callback_secret")
	return account{
		shape: httpapitest.New(
			httpapitest.Config{
				Gateway:  httpapitest.Kannel,
				User:     user,
				Password: password,
				Secret:   secret,
			},
		),
		settings: map[string]any{
			"secrets":          map[string]any{"password": passwordFile},
			"alphabet":         map[string]any{"gsm7": 0, "ucs2": 2},
			"longest_validity": "72h",
			"from":             "Sandbox",
			"request": map[string]any{
				"method": "GET",
				"path":   "/cgi-bin/sendsms",
				"query": map[string]any{
					"username": user, "password": "{secret:password}", "from": "{from}",
					"to": "{to}", "text": "{text}", "charset": "UTF-8",
					"coding": "{alphabet}", "validity": "{validity_minutes}", "dlr-mask": 27,
					"dlr-url": "{callback_url}",
				},
			},
			"answer": map[string]any{
				"code": `regexp:^(\d+|Empty receiver number|Number\(s\)|Temporal failure)`,
				"outcomes": []any{
					map[string]any{"status": 202, "code": []any{0, 3}, "outcome": "accepted"},
					map[string]any{
						"status":  "4xx",
						"code":    []any{"Empty receiver number", "Number(s)"},
						"outcome": "rejected",
					},
					map[string]any{"status": "4xx", "outcome": "refused"},
					map[string]any{"status": 503, "code": "Temporal failure", "outcome": "refused"},
				},
			},
			"callback": map[string]any{
				"query": map[string]any{"key": "{key}", "secret": "{callback_secret}"},
				"raw":   "&status=%d",
			},
			"verify": map[string]any{
				"by":           "secret",
				"at":           "query:secret",
				"secret_files": []any{secretFile},
			},
			"receipts": map[string]any{
				"key":   "query:key",
				"state": "query:status",
				"states": map[string]any{
					"1": "delivered", "2": "undelivered", "4": "pending", "8": "pending",
					"16": "undelivered",
				},
			},
			"inbound": map[string]any{
				"reference": "query:id",
				"from":      "query:from",
				"to":        "query:to",
				"text":      "query:text",
			},
		},
	}
}

// infobipAccount has an account whose receipts go to the address given with each message,
// authenticated by a proof that only the adapter can make. Messages of subscribers come with the
// user and the password of the account.
func infobipAccount(s *secrets, _ string) account {
	const user = "sandbox"
	keyFile, key := s.text("api_key")
	secretFile, secret := s.text("callback_secret")
	return account{
		shape: infobiptest.New(infobiptest.Config{Key: key, User: user, Password: secret}),
		settings: map[string]any{
			"api_key_file": keyFile, "callback_auth": []string{"url", "basic"},
			"callback_user": user, "callback_secret_files": []string{secretFile}, "from": "Sandbox",
		},
	}
}

func plivoAccount(s *secrets, _ string) account {
	id := "MA" + strings.Repeat("0", 18)
	tokenFile, token := s.text("auth_token")
	return account{
		shape: plivotest.New(plivotest.Config{AuthID: id, AuthToken: token}), path: "/v1",
		settings: map[string]any{
			"auth_id":         id,
			"auth_token_file": []string{tokenFile},
			"from":            "+15550100100",
		},
	}
}

func sinchAccount(s *secrets, _ string) account {
	const plan = "sandbox-plan"
	tokenFile, token := s.text("token")
	secretFile, secret := s.text("callback_secret")
	return account{
		shape: sinchtest.New(sinchtest.Config{Plan: plan, Token: token, Secret: secret}),
		settings: map[string]any{
			"service_plan_id": plan, "token_file": tokenFile,
			"callback_secret_files": []string{secretFile}, "from": "Sandbox",
		},
	}
}

func telnyxAccount(s *secrets, _ string) account {
	keyFile, key := s.text("api_key")
	_, text := s.file("signing_seed",
		func() string { return base64.StdEncoding.EncodeToString(randomBytes(ed25519.SeedSize)) })
	seed, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(seed) != ed25519.SeedSize {
		s.fail(errors.New("the seed of a Telnyx account cannot be read; remove its file"))
		seed = make([]byte, ed25519.SeedSize)
	}
	private := ed25519.NewKeyFromSeed(seed)
	public, _ := private.Public().(ed25519.PublicKey)
	return account{
		shape: telnyxtest.New(telnyxtest.Config{APIKey: key, Key: private}), path: "/v2",
		settings: map[string]any{
			"api_key_file": keyFile, "public_key": base64.StdEncoding.EncodeToString(public),
			"from": "+15550100100", "messaging_profile_id": "40000000-0000-4000-8000-000000000000",
		},
	}
}

func twilioAccount(s *secrets, _ string) account {
	accountSID, keySID := "AC"+strings.Repeat("0", 32), "SK"+strings.Repeat("0", 32)
	keyFile, key := s.text("api_key_secret")
	tokenFile, token := s.text("auth_token")
	return account{
		shape: twiliotest.New(
			twiliotest.Config{
				AccountSID: accountSID,
				KeySID:     keySID,
				KeySecret:  key,
				AuthToken:  token,
			},
		),
		settings: map[string]any{
			"account_sid": accountSID, "api_key_sid": keySID, "api_key_secret_file": keyFile,
			"auth_token_file": []string{tokenFile},
			"from":            "+15550100100",
		},
	}
}

// vonageAccount is an account that uses the Messages API, and vonageSMSAccount one that uses the
// SMS API: an account at Vonage gets its receipts from one of them.
func vonageAccount(s *secrets, _ string) account { return vonageOf(s, "sandbox1", false) }

func vonageSMSAccount(s *secrets, _ string) account {
	a := vonageOf(s, "sandbox2", true)
	a.settings["api"] = "sms"
	return a
}

func vonageOf(s *secrets, key string, bySMS bool) account {
	secretFile, secret := s.text("api_secret")
	signatureFile, signature := s.text("signature_secret")
	return account{
		shape: vonagetest.New(
			vonagetest.Config{SMS: bySMS, APIKey: key, APISecret: secret, Secret: signature},
		),
		settings: map[string]any{
			"api_key": key, "api_secret_file": secretFile,
			"signature_secret_files": []string{signatureFile}, "from": "Sandbox",
		},
	}
}

func smppAccount(s *secrets, _ string) account {
	// SMPP allows eight characters.
	file, password := s.file("password", func() string { return "sandbox1" })
	return account{
		systemID: "sandbox",
		password: password,
		settings: map[string]any{"system_id": "sandbox", "password_file": file},
	}
}
