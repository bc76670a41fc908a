package embedded

import "testing"

func TestAChannelFindsItsCarrierAgain(t *testing.T) {
	t.Parallel()
	c := &Carriers{}
	defer c.Close()
	var addresses []string
	for _, name := range []string{"a", "b", "a"} {
		address, err := c.Start(name)
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, address)
	}
	if addresses[0] == addresses[1] || addresses[0] != addresses[2] {
		t.Errorf("got %v", addresses)
	}
}
