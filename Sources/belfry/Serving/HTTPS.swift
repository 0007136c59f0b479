import Cryptography
import Foundation
import HTTPServer
import HubCore
import Synchronization

/// The options for HTTPS in addition to HTTP.
struct HTTPSOptions: Sendable {
  /// The port; 0 picks a free one.
  var port: UInt16
  var source: CertificateSource
}

extension HTTPSOptions {
  /// Reads the settings; `nil` if none of them enables HTTPS.
  ///
  /// - Throws: The errors of ``check(_:)``, or ``CommandFailure`` if the authority of
  ///   `tlsSelfSigned` is unusable.
  init?(_ configuration: Configuration, data: DataDirectory) throws {
    try Self.check(configuration)
    port = UInt16(clamping: configuration.integer(.tlsPort))
    if configuration.flag(.tlsSelfSigned) {
      let authority = try OwnAuthority(
        in: data,
        names: [configuration.text(.address) ?? "127.0.0.1"] + configuration.list(.publicNames))
      source = .issued { try authority.issue(at: $0) }
    } else if let certificate = configuration.text(.tlsCertificate),
      let key = configuration.text(.tlsKey)
    {
      source = .files(CertificateFiles(certificate: certificate, key: key))
    } else {
      return nil
    }
  }

  /// - Throws: ``ConfigurationError`` for settings that contradict each other.
  static func check(_ configuration: Configuration) throws(ConfigurationError) {
    let certificate = configuration.text(.tlsCertificate)
    let key = configuration.text(.tlsKey)
    switch (certificate, key, configuration.flag(.tlsSelfSigned)) {
    case (nil, nil, true), (_?, _?, false): break
    case (nil, nil, false):
      if configuration.entries[Setting.tlsPort.key]?.origin == .standard { return }
      throw ConfigurationError(
        "'tlsPort' is set, but no certificate: name tlsCertificate and tlsKey, or set tlsSelfSigned"
      )
    case (_?, nil, false):
      throw ConfigurationError(
        "'tlsCertificate' is set, but not 'tlsKey', the file with its private key")
    case (nil, _?, false):
      throw ConfigurationError("'tlsKey' is set, but not 'tlsCertificate'")
    case (_, _, true):
      throw ConfigurationError(
        "'tlsSelfSigned' makes a certificate of its own; leave it or tlsCertificate and tlsKey out")
    }
  }
}

/// The source of the certificate of an HTTPS listener.
enum CertificateSource: Sendable {
  /// An operator's files, reloaded when they change.
  case files(CertificateFiles)
  /// A certificate issued here, and renewed before it expires.
  case issued(@Sendable (Date) throws -> CertificateIdentity)
}

/// Keeps an HTTPS listener's certificate up to date: called periodically, it returns a new
/// certificate if there is one.
///
/// Certificate and key are replaced together. An unusable or partly written pair leaves the present
/// one in place.
struct CertificateStore: Sendable {
  private var source: CertificateSource
  private let log: @Sendable (String) -> Void
  /// The stamps of the files when they were last read.
  private var read: [FileStamp?] = []
  /// The stamps of the files at the last check.
  private var seen: [FileStamp?] = []
  private var expiry: Date
  /// The certificate that the listener starts with.
  let first: TLSIdentity

  /// The time before its expiry at which an issued certificate is renewed.
  private static let margin: TimeInterval = 30 * 86_400

  /// - Throws: ``CommandFailure`` if there is no usable certificate to start with.
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

  /// - Returns: The new certificate; `nil` to keep the present one.
  mutating func look(at now: Date) -> TLSIdentity? {
    do {
      let identity: CertificateIdentity
      switch source {
      case .files(let files):
        let stamp = files.stamp
        defer { seen = stamp }
        // Writing two files takes a moment, so files that changed between two checks are not read
        // yet.
        guard stamp != read, stamp == seen else { return nil }
        read = stamp
        identity = try files.read()
      case .issued(let issue):
        guard now > expiry - Self.margin else { return nil }
        identity = try issue(now)
      }
      return try take(identity, at: now)
    } catch {
      log("HTTPS keeps the certificate it has: \(error)")
      return nil
    }
  }

  /// Reads these files at once, whether or not they have changed, since an operator has said that
  /// they are complete.
  /// - Returns: The new certificate; `nil` if the listener uses no files.
  /// - Throws: ``CommandFailure`` for an unusable pair; the present one stays.
  mutating func take(_ files: CertificateFiles, at now: Date) throws -> TLSIdentity? {
    guard case .files = source else { return nil }
    let stamp = files.stamp
    let next = try take(files.read(), at: now)
    source = .files(files)
    (read, seen) = (stamp, stamp)
    return next
  }

  private mutating func take(_ identity: CertificateIdentity, at now: Date) throws -> TLSIdentity {
    let next = try TLSIdentity(identity)
    expiry = identity.certificate.notAfter ?? .distantFuture
    log("HTTPS takes up the certificate of \(identity.certificate.subject), \(validity)")
    warnOfExpiry(at: now)
    return next
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

/// An HTTPS listener and its certificates.
final class SecureListener: Sendable {
  let listener: HTTPListener
  private let certificates: Mutex<CertificateStore>
  private let keeping: Mutex<Task<Void, Never>?>

  init(
    _ listener: HTTPListener, certificates: CertificateStore,
    log: @escaping @Sendable (String) -> Void
  ) {
    self.listener = listener
    self.certificates = Mutex(certificates)
    keeping = Mutex(nil)
    let task = Task { [weak self] in
      // Checking a file twice costs microseconds, and an operator who renews a certificate wants to
      // see it served.
      while (try? await Task.sleep(for: .seconds(5))) != nil, let self {
        do {
          try self.certificates.withLock { certificates in
            if let next = certificates.look(at: Date()) { try listener.replaceIdentity(next) }
          }
        } catch {
          log("HTTPS keeps the certificate it has: \(error)")
        }
      }
    }
    keeping.withLock { $0 = task }
  }

  /// Serves the certificate in these files from now on.
  /// - Throws: An error if they are unusable; the present one stays.
  func take(_ files: CertificateFiles) throws {
    try certificates.withLock { certificates in
      if let next = try certificates.take(files, at: Date()) { try listener.replaceIdentity(next) }
    }
  }

  func stop(within limit: Duration) async {
    keeping.withLock { $0?.cancel() }
    await listener.stop(within: limit)
  }
}
