import Cryptography
import Foundation
import HTTPServer

/// Where the certificate of an HTTPS listener comes from.
enum CertificateSource: Sendable {
  /// An operator's files; taken up again when they change.
  case files(CertificateFiles)
  /// Issued here; another one is asked for in time before it runs out.
  case issued(@Sendable (Date) throws -> CertificateIdentity)
}

/// Keeps an HTTPS listener's certificate up to date: is asked to look again and again, and says
/// when there is another.
///
/// Certificate and key are switched together. A pair that is unusable, or only half written, leaves
/// the present one in place.
struct CertificateKeeper: Sendable {
  private let source: CertificateSource
  private let log: @Sendable (String) -> Void
  /// The files as they were when they were last read.
  private var read: [FileStamp?] = []
  /// The files at the last look.
  private var seen: [FileStamp?] = []
  private var expiry: Date
  /// What the listener starts with.
  let first: TLSIdentity

  /// A certificate of ours is renewed so long before its end.
  private static let margin: TimeInterval = 30 * 86_400

  /// - Throws: ``CommandFailure`` when there is no usable certificate to start with.
  init(
    _ source: CertificateSource, at now: Date, log: @escaping @Sendable (String) -> Void
  ) throws {
    self.source = source
    self.log = log
    let identity: CertificateIdentity
    switch source {
    case .files(let files):
      read = files.stamp
      seen = read
      identity = try files.read()
    case .issued(let issue): identity = try issue(now)
    }
    first = try TLSIdentity(identity)
    expiry = identity.certificate.notAfter ?? .distantFuture
    warnOfExpiry(at: now)
  }

  /// - Returns: The certificate to serve from now on; `nil` when that at hand is right.
  mutating func look(at now: Date) -> TLSIdentity? {
    do {
      let identity: CertificateIdentity
      switch source {
      case .files(let files):
        let stamp = files.stamp
        defer { seen = stamp }
        // Anyone who writes two files needs a moment: what changes between two looks is not read yet.
        guard stamp != read, stamp == seen else { return nil }
        read = stamp
        identity = try files.read()
      case .issued(let issue):
        guard now > expiry - Self.margin else { return nil }
        identity = try issue(now)
      }
      let next = try TLSIdentity(identity)
      expiry = identity.certificate.notAfter ?? .distantFuture
      log("HTTPS takes up the certificate of \(identity.certificate.subject), \(validity)")
      warnOfExpiry(at: now)
      return next
    } catch {
      log("HTTPS keeps the certificate it has: \(error)")
      return nil
    }
  }

  private var validity: String { "valid until \(expiry.formatted(.iso8601))" }

  private func warnOfExpiry(at now: Date) {
    if expiry <= now {
      log("the HTTPS certificate has run out: it was \(validity). Clients refuse it; replace it")
    }
  }
}

extension TLSIdentity {
  init(_ identity: CertificateIdentity) throws(CryptographyError) {
    self.init(
      certificatePEM: identity.certificatePEM, privateKeyPEM: try identity.privateKeyPEM())
  }
}
