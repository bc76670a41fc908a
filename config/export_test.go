package config

var ZonesOf = zonesOf
