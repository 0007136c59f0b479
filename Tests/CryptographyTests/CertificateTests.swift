import Foundation
import Testing
import Wire

@testable import Cryptography

@Suite("Certificates")
struct CertificateTests {
  static let now = Date(timeIntervalSince1970: 1_700_000_000)

  @Test("an authority signs itself, for ten years")
  func authority() throws {
    let authority = try CertificateAuthority(commonName: "Belfry Test CA", at: Self.now)
    let certificate = authority.certificate
    #expect(certificate.commonName == "Belfry Test CA")
    #expect(certificate.subject == "CN=Belfry Test CA")
    #expect(certificate.isIssued(by: certificate))
    #expect(certificate.notBefore == Self.now - 86_400)
    #expect(certificate.notAfter == Self.now + 3650 * 86_400)
    // basicConstraints, critical, CA:TRUE
    #expect(certificate.extensionValue("2.5.29.19") == [0x30, 0x03, 0x01, 0x01, 0xFF])
    #expect(certificate.matches(authority.key.anyKey))
    #expect(certificate.apnsPermissions == nil)
  }

  @Test("an authority comes back from its PEM texts; with another's key it does not")
  func authorityAgain() throws {
    let first = try CertificateAuthority(commonName: "One")
    let again = try CertificateAuthority(
      certificate: Certificate(pem: first.certificate.pem),
      key: P256PrivateKey(pem: first.key.pem()))
    let leaf = try again.issueForLocalhost()
    #expect(leaf.certificate.isIssued(by: first.certificate))
    #expect(throws: CryptographyError.self) {
      try CertificateAuthority(certificate: first.certificate, key: P256PrivateKey())
    }
  }

  @Test("a server certificate names its hosts and addresses and its issuer")
  func leaf() throws {
    let authority = try CertificateAuthority(commonName: "CA", at: Self.now)
    let stranger = try CertificateAuthority(commonName: "CA", at: Self.now)
    let identity = try authority.issueForLocalhost(moreNames: ["push.test"], at: Self.now)
    let certificate = identity.certificate
    #expect(certificate.isIssued(by: authority.certificate))
    #expect(!certificate.isIssued(by: stranger.certificate))
    #expect(certificate.matches(identity.privateKey))
    #expect(!certificate.matches(stranger.key.anyKey))
    let names = try #require(certificate.extensionValue("2.5.29.17"))
    for name in ["localhost", "push.test"] {
      #expect(Data(names).range(of: Data(name.utf8)) != nil)
    }
    #expect(Data(names).range(of: Data([0x87, 4, 127, 0, 0, 1])) != nil)
    let isRead = try Certificate(der: certificate.der)
    #expect(isRead == certificate)
    #expect(isRead.sha256Thumbprint == Digest.sha256(certificate.der))
    let again = try CertificateIdentity(
      certificatePEM: identity.certificatePEM, privateKeyPEM: identity.privateKeyPEM())
    #expect(again.certificate == certificate)
  }

  @Test("a negative lifetime makes a certificate that has expired but began before it ended")
  func expired() throws {
    let authority = try CertificateAuthority(commonName: "CA", at: Self.now)
    var request = CertificateAuthority.LeafRequest(commonName: "old")
    request.lifetime = -3600
    let certificate = try authority.issue(request, at: Self.now).certificate
    #expect(certificate.notAfter == Self.now - 3600)
    #expect(try #require(certificate.notBefore) < Self.now - 3600)
  }

  @Test("an APNs client certificate says which app, environments and topics it is for")
  func apns() throws {
    let authority = try CertificateAuthority(commonName: "CA")
    var request = CertificateAuthority.LeafRequest(commonName: "Apple Push Services")
    request.userID = "com.example.app"
    request.serverAuthentication = false
    request.apnsExtensions = [APNsExtension.production, APNsExtension.voip]
    let single = try #require(try authority.issue(request).certificate.apnsPermissions)
    #expect(
      single
        == .init(
          bundleID: "com.example.app", development: false, production: true, voip: true,
          topics: ["com.example.app"], requiresTopic: false))
    let topics = ["com.example.app", "com.example.app.voip"]
    request.topics = topics
    let several = try #require(try authority.issue(request).certificate.apnsPermissions)
    #expect(several.topics == topics)
    #expect(several.requiresTopic)
  }

  @Test("names that would end OpenSSL's notation are refused")
  func injection() throws {
    let authority = try CertificateAuthority(commonName: "CA")
    for name in ["a,DNS:b", "", "a b", "a\nb"] {
      #expect(throws: CryptographyError.self) { try authority.issueForLocalhost(moreNames: [name]) }
    }
    for address in ["127.0.0.1,DNS:evil", "localhost", "1.2.3"] {
      var request = CertificateAuthority.LeafRequest(commonName: "x")
      request.ipAddresses = [address]
      #expect(throws: CryptographyError.self) { try authority.issue(request) }
    }
  }

  @Test("what is no certificate is refused")
  func malformed() throws {
    let der = try CertificateAuthority(commonName: "CA").certificate.der
    for bytes in [[], [0x30], Array(der.dropLast()), der + [0]] {
      #expect(throws: CryptographyError.self) { try Certificate(der: bytes) }
    }
    #expect(throws: CryptographyError.self) { try Certificate(pem: "nothing") }
    #expect(try Certificate.all(inPEM: "nothing").isEmpty)
  }

  @Test(
    "a topic list of another form is no list", arguments: ["", "0500", "3003020101", "30030c01"])
  func topicLists(hex: String) throws {
    #expect(APNsExtension.decode(topics: try #require(Hex.decode(hex))) == nil)
  }
}
