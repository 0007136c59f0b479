/// What a server shows its clients to prove who it is: a certificate with its chain, and the private
/// key.
package struct TLSIdentity: Sendable, Equatable, CustomStringConvertible,
  CustomDebugStringConvertible
{
  /// PEM; the server's own certificate first, then its issuers in order.
  package let certificatePEM: String
  /// PEM, not encrypted. Secret.
  package let privateKeyPEM: String

  package init(certificatePEM: String, privateKeyPEM: String) {
    self.certificatePEM = certificatePEM
    self.privateKeyPEM = privateKeyPEM
  }

  package var description: String { "a TLS identity" }
  package var debugDescription: String { description }
}
