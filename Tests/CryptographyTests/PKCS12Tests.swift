import Foundation
import Testing
import Wire

@testable import Cryptography

@Suite("PKCS#12")
struct PKCS12Tests {
  private static let archives = Vectors.all.apnsP12

  private func kind(_ archive: [UInt8], _ password: String) -> CryptographyError.Kind? {
    do throws(CryptographyError) {
      _ = try PKCS12.open(archive, password: password)
      return nil
    } catch {
      return error.kind
    }
  }

  @Test("the vectors' archives open, old ciphers too", arguments: Self.archives.cases)
  func opening(example: Vectors.Archive) throws {
    let archive = try #require(Base64.decode(example.p12B64))
    let identity = try PKCS12.open(archive, password: example.password)
    let expected = example.expect
    let permissions = try #require(identity.certificate.apnsPermissions)
    #expect(permissions.bundleID == expected.uid)
    #expect(permissions.development == expected.development)
    #expect(permissions.production == expected.production)
    #expect(permissions.voip == expected.voip)
    #expect(permissions.topics == expected.topics)
    #expect(permissions.requiresTopic == expected.topicHeaderRequired)
    #expect(Hex.encode(identity.certificate.sha1Thumbprint) == expected.sha1ThumbprintHex)
    #expect(identity.certificate.matches(identity.privateKey))
    let issuer = try Certificate(pem: Self.archives.caCertificatePem)
    #expect(identity.certificate.isIssued(by: issuer))
    // The key must outlive the archive's library context: export and read it once more.
    let again = try PrivateKey(pem: identity.privateKeyPEM())
    #expect(identity.certificate.matches(again))
  }

  @Test("a wrong password is named as such", arguments: Self.archives.cases)
  func wrongPassword(example: Vectors.Archive) throws {
    let archive = try #require(Base64.decode(example.p12B64))
    #expect(kind(archive, example.wrongPassword) == .wrongPassword)
    #expect(kind(archive, "") == .wrongPassword)
  }

  /// Made with `openssl pkcs12 -export -iter 6000000 -nomaciter`: the count of the outer check is
  /// harmless, those inside are not.
  @Test(
    "an archive that asks for too much work inside is refused before it is done",
    arguments: ["pbes2", "pbe", "bag"])
  func costly(name: String) throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "Fixtures/costly-\(name).p12")
    let archive = Array(try Data(contentsOf: file))
    let before = threadCPU()
    #expect(kind(archive, "secret") == .unsupported)
    // The work itself takes seconds of this thread, however busy the machine is.
    #expect(threadCPU() - before < 1_000_000_000)
  }

  /// What this thread has worked so far, in nanoseconds.
  private func threadCPU() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
  }

  @Test("what is no archive, or a damaged one, is refused")
  func malformed() throws {
    let archive = try #require(Base64.decode(Self.archives.cases[0].p12B64))
    let password = Self.archives.cases[0].password
    #expect(kind([], password) == .malformed)
    #expect(kind(Array("plain text".utf8), password) == .malformed)
    #expect(kind(Array(archive.dropLast(7)), password) == .malformed)
    var changed = archive
    changed[archive.count / 2] ^= 0x01
    #expect(kind(changed, password) != nil)
  }

  @Test("an archive made here opens with its password and no other", arguments: ["secret", ""])
  func making(password: String) throws {
    let authority = try CertificateAuthority(commonName: "CA")
    var request = CertificateAuthority.LeafRequest(commonName: "leaf")
    request.userID = "com.example.app"
    request.apnsExtensions = [APNsExtension.development]
    let leaf = try authority.issue(request)
    let identity = try CertificateIdentity(
      certificate: leaf.certificate, chain: [authority.certificate], privateKey: leaf.privateKey)
    let archive = try PKCS12.make(identity, password: password, name: "push")
    let opened = try PKCS12.open(archive, password: password)
    #expect(opened.certificate == leaf.certificate)
    #expect(opened.chain == [authority.certificate])
    #expect(opened.certificate.matches(opened.privateKey))
    #expect(kind(archive, password + "x") == .wrongPassword)
  }
}
