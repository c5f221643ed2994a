#!/bin/sh
# Makes, in FOLDER, what Flower's TLS needs: a certificate authority of your own
# (ca.key, ca.pem) and the SuperLink's certificate (link.key, link.pem), which is valid
# for ADDRESS, and 127.0.0.1 for what runs beside it.
#
#   sh carriers/flower/certificates.sh FOLDER ADDRESS
#
# Sites get ca.pem alone; the keys never leave the coordinator. Each site makes its own
# key by `ssh-keygen -t ecdsa -b 384 -N '' -f node`, and gives away node.pub alone.
set -eu
umask 077
mkdir -p "$1"
cd "$1"
case $2 in
  *[!0-9.]*) address=DNS:$2 ;;
  *) address=IP:$2 ;;
esac
openssl ecparam -name secp384r1 -genkey -noout -out ca.key
openssl req -x509 -new -key ca.key -sha384 -days 365 -out ca.pem \
  -subj '/CN=The coordinator of sites'
openssl ecparam -name secp384r1 -genkey -noout -out link.key
openssl req -new -key link.key -subj "/CN=$2" -out link.csr
printf 'subjectAltName=%s,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n' "$address" > link.ext
openssl x509 -req -in link.csr -CA ca.pem -CAkey ca.key -CAcreateserial -sha384 \
  -days 365 -extfile link.ext -out link.pem 2> link.log
rm link.csr link.ext link.log
