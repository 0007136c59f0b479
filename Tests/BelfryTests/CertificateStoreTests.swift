import Cryptography
import Foundation
import HTTPServer
import Synchronization
import Testing

@testable import belfry

@Suite("The certificate of HTTPS")
struct CertificateStoreTests {
  let scratch: Scratch
  let authority: CertificateAuthority
  let log = Log()

  init() throws {
    scratch = try Scratch()
    authority = try CertificateAuthority(commonName: "Test")
  }

  final class Log: Sendable {
    private let lines = Mutex<[String]>([])
    func add(_ line: String) { lines.withLock { $0.append(line) } }
    var text: String { lines.withLock { $0.joined(separator: "\n") } }
  }

  private func pair() throws -> CertificateIdentity { try authority.issueForLocalhost() }

  private func write(_ pair: CertificateIdentity) throws -> CertificateFiles {
    CertificateFiles(
      certificate: try scratch.file("cert.pem", pair.certificatePEM),
      key: try scratch.file("key.pem", pair.privateKeyPEM()))
  }

  private func certificates(_ source: CertificateSource) throws -> CertificateStore {
    try CertificateStore(source, at: Date()) { [log] in log.add($0) }
  }

  @Test("a new pair is taken up once it rests, and only once")
  func renewal() throws {
    let (old, new) = (try pair(), try pair())
    var certificates = try certificates(.files(write(old)))
    #expect(try certificates.first == TLSIdentity(old))
    #expect(certificates.look(at: Date()) == nil)
    _ = try write(new)
    #expect(certificates.look(at: Date()) == nil, "it may still be being written")
    #expect(try certificates.look(at: Date()) == TLSIdentity(new))
    #expect(certificates.look(at: Date()) == nil)
    #expect(log.text.contains("takes up the certificate of CN=localhost"))
  }

  @Test("half a pair, an empty file and no file leave the old one in place, and the log says so")
  func halfWritten() throws {
    let (old, new) = (try pair(), try pair())
    let files = try write(old)
    var certificates = try certificates(.files(files))
    _ = try scratch.file("cert.pem", new.certificatePEM)
    for _ in 1...4 { #expect(certificates.look(at: Date()) == nil) }
    #expect(log.text.split(separator: "\n").count == 1, "said once: \(log.text)")
    #expect(
      log.text.contains("keeps the certificate it has: 'tlsKey': \(files.key) does not belong"))
    _ = try scratch.file("cert.pem", "")
    for _ in 1...2 { #expect(certificates.look(at: Date()) == nil) }
    #expect(log.text.contains("cert.pem holds no PEM block"))
    try FileManager.default.removeItem(atPath: files.certificate)
    for _ in 1...2 { #expect(certificates.look(at: Date()) == nil) }
    #expect(log.text.contains("cert.pem cannot be read"))
    _ = try write(new)
    _ = certificates.look(at: Date())
    #expect(try certificates.look(at: Date()) == TLSIdentity(new))
    #expect(!log.text.contains("PRIVATE KEY"))
  }

  @Test("a certificate that has run out is served, and complained about")
  func expired() throws {
    var request = CertificateAuthority.LeafRequest(commonName: "old")
    request.lifetime = -60
    _ = try certificates(.files(write(authority.issue(request))))
    #expect(log.text.contains("has run out"))
  }

  @Test("a certificate of ours is renewed a month before its end")
  func issued() throws {
    let authority = authority
    var certificates = try certificates(.issued { try authority.issueForLocalhost(at: $0) })
    #expect(certificates.look(at: Date() + 300 * 86_400) == nil)
    let next = certificates.look(at: Date() + 340 * 86_400)
    #expect(next != nil && next != certificates.first)
    #expect(certificates.look(at: Date() + 340 * 86_400) == nil)
  }

  @Test("the authority of tlsSelfSigned is kept, for its owner only, and knows the names")
  func ownAuthority() throws {
    let data = DataDirectory(path: scratch.path)
    // Who has opened a draft that was left sees nothing of the key.
    let left = try #require(
      FileHandle(forReadingAtPath: try scratch.file("tls-ca-key.pem.part", "")))
    let first = try OwnAuthority(in: data, names: ["hub.example.com", "192.0.2.7", "0.0.0.0"])
    let second = try OwnAuthority(in: data, names: [])
    let trusted = try Certificate(
      pem: String(contentsOfFile: first.certificateFile, encoding: .utf8))
    for authority in [first, second] {
      #expect(try authority.issue(at: Date()).certificate.isIssued(by: trusted))
    }
    let names = try first.issue(at: Date()).certificate.extensionValue("2.5.29.17") ?? []
    #expect(String(decoding: names, as: UTF8.self).contains("hub.example.com"))
    for file in ["tls-ca.pem", "tls-ca-key.pem"] {
      let attributes = try FileManager.default.attributesOfItem(atPath: scratch.path + "/" + file)
      #expect((attributes[.posixPermissions] as? Int) == 0o600)
    }
    #expect((try left.readToEnd() ?? Data()).isEmpty)
    _ = try scratch.file("tls-ca-key.pem", "broken")
    #expect { _ = try OwnAuthority(in: data, names: []) } throws: { error in
      "\(error)".contains("remove both to have them made again")
    }
  }
}
