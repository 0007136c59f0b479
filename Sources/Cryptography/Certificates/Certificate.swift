import COpenSSL
package import Foundation

/// An X.509 certificate.
package struct Certificate: Sendable, Equatable {
  private let handle: CertificateHandle
  package let der: [UInt8]

  /// Parses one certificate.
  /// - Throws: ``CryptographyError`` (malformed), also when bytes follow the certificate.
  package init(der: [UInt8]) throws(CryptographyError) {
    guard let handle = CertificateHandle(der: der) else {
      throw CryptographyError(.malformed, "The data is not an X.509 certificate.")
    }
    (self.handle, self.der) = (handle, der)
  }

  /// Takes ownership of an OpenSSL certificate.
  init(owning pointer: OpaquePointer) throws(CryptographyError) {
    handle = CertificateHandle(owning: pointer)
    der = try DEROutput.bytes("export a certificate") { i2d_X509(pointer, $0) }
  }

  /// Parses the first `CERTIFICATE` block of PEM text.
  package init(pem: String) throws(CryptographyError) {
    guard let first = try Self.all(inPEM: pem).first else {
      throw CryptographyError(.malformed, "The text holds no PEM block 'CERTIFICATE'.")
    }
    self = first
  }

  /// All certificates of PEM text in their order; none is not an error.
  package static func all(inPEM text: String) throws(CryptographyError) -> [Certificate] {
    var found: [Certificate] = []
    for block in try PEM.blocks(in: text) where block.label == "CERTIFICATE" {
      found.append(try Certificate(der: block.der))
    }
    return found
  }

  package var pem: String { PEM.encode(label: "CERTIFICATE", der: der) }

  package static func == (left: Self, right: Self) -> Bool { left.der == right.der }

  var pointer: OpaquePointer { handle.pointer }

  /// SHA-256 over the DER form, 32 bytes.
  package var sha256Thumbprint: [UInt8] { Digest.sha256(der) }

  /// SHA-1 over the DER form, 20 bytes: `Thumbprint` in the hub's wire format.
  package var sha1Thumbprint: [UInt8] { Digest.sha1(der) }

  /// The subject as one line (RFC 2253), for people: `CN=Apple Push Services,UID=com.example.app`.
  package var subject: String {
    guard let out = BIO_new(BIO_s_mem()) else { return "" }
    defer {
      BIO_free(out)
      OpenSSLErrors.drain()
    }
    X509_NAME_print_ex(out, X509_get_subject_name(pointer), 0, belfry_rfc2253())
    var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(out))
    let count = BIO_read(out, &bytes, Int32(clamping: bytes.count))
    return String(decoding: bytes.prefix(Int(max(count, 0))), as: UTF8.self)
  }

  /// The subject's common name, if it has one.
  package var commonName: String? { subjectText(NID_commonName) }

  /// The subject's UID (0.9.2342.19200300.100.1.1), if it has one: an app's bundle id.
  package var userID: String? { subjectText(NID_userId) }

  /// The beginning of the validity period; `nil` when it is unreadable.
  package var notBefore: Date? { Self.date(X509_get0_notBefore(pointer)) }

  /// The end of the validity period; `nil` when it is unreadable.
  package var notAfter: Date? { Self.date(X509_get0_notAfter(pointer)) }

  /// The contents of the extension with this object identifier in dotted decimals; `nil` when the
  /// certificate has none.
  package func extensionValue(_ identifier: String) -> [UInt8]? {
    defer { OpenSSLErrors.drain() }
    guard let object = OBJ_txt2obj(identifier, 1) else { return nil }
    defer { ASN1_OBJECT_free(object) }
    let position = X509_get_ext_by_OBJ(pointer, object, -1)
    guard position >= 0, let found = X509_get_ext(pointer, position),
      let data = X509_EXTENSION_get_data(found)
    else { return nil }
    return Self.bytes(data)
  }

  /// Whether `key` is the private half of this certificate's key.
  package func matches(_ key: PrivateKey) -> Bool {
    defer { OpenSSLErrors.drain() }
    return X509_check_private_key(pointer, key.handle.pointer) == 1
  }

  /// Whether `issuer` matches this certificate's issuer name and its key made the signature.
  /// Validity periods and purposes are not considered: TLS checks those.
  package func isIssued(by issuer: Certificate) -> Bool {
    defer { OpenSSLErrors.drain() }
    guard X509_check_issued(issuer.pointer, pointer) == X509_V_OK,
      let key = X509_get0_pubkey(issuer.pointer)
    else { return false }
    return X509_verify(pointer, key) == 1
  }

  /// Whether the name constraints of this authority permit the names of a certificate (RFC 5280,
  /// section 4.2.1.10); `nil` if it has none.
  package func constraintsPermit(_ certificate: Certificate) -> Bool? {
    defer { OpenSSLErrors.drain() }
    guard let found = X509_get_ext_d2i(pointer, NID_name_constraints, nil, nil) else { return nil }
    let constraints = found.assumingMemoryBound(to: NAME_CONSTRAINTS.self)
    defer { NAME_CONSTRAINTS_free(constraints) }
    // Reads the extensions, whose names would otherwise not be checked.
    X509_check_purpose(certificate.pointer, -1, 0)
    return NAME_CONSTRAINTS_check(certificate.pointer, constraints) == X509_V_OK
  }

  private func subjectText(_ kind: Int32) -> String? {
    guard let name = X509_get_subject_name(pointer) else { return nil }
    let position = X509_NAME_get_index_by_NID(name, kind, -1)
    guard position >= 0, let entry = X509_NAME_get_entry(name, position),
      let value = X509_NAME_ENTRY_get_data(entry)
    else { return nil }
    var text: UnsafeMutablePointer<UInt8>?
    let count = ASN1_STRING_to_UTF8(&text, value)
    defer {
      belfry_free(text)
      OpenSSLErrors.drain()
    }
    guard count >= 0, let text else { return nil }
    return String(decoding: UnsafeBufferPointer(start: text, count: Int(count)), as: UTF8.self)
  }

  private static func bytes(_ string: UnsafePointer<ASN1_STRING>) -> [UInt8] {
    let count = Int(ASN1_STRING_length(string))
    guard count > 0, let data = ASN1_STRING_get0_data(string) else { return [] }
    return Array(UnsafeBufferPointer(start: data, count: count))
  }

  private static func date(_ time: UnsafePointer<ASN1_TIME>?) -> Date? {
    guard let time, let epoch = ASN1_TIME_set(nil, 0) else { return nil }
    defer {
      ASN1_STRING_free(epoch)
      OpenSSLErrors.drain()
    }
    var days: Int32 = 0
    var seconds: Int32 = 0
    guard ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else { return nil }
    return Date(timeIntervalSince1970: Double(days) * 86_400 + Double(seconds))
  }
}

/// Owns one `X509`.
///
/// `@unchecked Sendable`: never changed after `init`. OpenSSL fills a certificate's caches at its
/// first check under the certificate's own lock.
private final class CertificateHandle: @unchecked Sendable {
  let pointer: OpaquePointer

  init(owning pointer: OpaquePointer) { self.pointer = pointer }

  init?(der: [UInt8]) {
    let (pointer, isWhole) = der.withUnsafeBufferPointer { bytes in
      var cursor = bytes.baseAddress
      let pointer = d2i_X509(nil, &cursor, bytes.count)
      return (pointer, cursor == bytes.baseAddress.map { $0 + bytes.count })
    }
    OpenSSLErrors.drain()
    guard let pointer else { return nil }
    self.pointer = pointer
    guard isWhole else { return nil }
  }

  deinit { X509_free(pointer) }
}

/// Extensions of the client certificates of Apple's push service, as object identifiers under
/// 1.2.840.113635.100.6.3.
package enum APNsExtension {
  /// Permits pushes to the development environment.
  package static let development = "1.2.840.113635.100.6.3.1"
  /// Permits pushes to the production environment.
  package static let production = "1.2.840.113635.100.6.3.2"
  /// Permits pushes to the app's VoIP tokens.
  package static let voip = "1.2.840.113635.100.6.3.4"
  /// The list of topics: a SEQUENCE of topic and kinds in turn.
  package static let topics = "1.2.840.113635.100.6.3.6"

  /// Encodes a topic list; every topic is of the kind `app`.
  static func encode(topics: [String]) -> [UInt8] {
    var contents: [UInt8] = []
    for topic in topics {
      let kinds = DERReader.element(DERReader.Tag.utf8String, Array("app".utf8))
      contents += DERReader.element(DERReader.Tag.utf8String, Array(topic.utf8))
      contents += DERReader.element(DERReader.Tag.sequence, kinds)
    }
    return DERReader.element(DERReader.Tag.sequence, contents)
  }

  /// The topics of a list; `nil` when it is malformed.
  static func decode(topics value: [UInt8]) -> [String]? {
    var outer = DERReader(value)
    guard let contents = outer.read(DERReader.Tag.sequence), outer.isAtEnd else { return nil }
    var reader = DERReader(contents)
    var topics: [String] = []
    while !reader.isAtEnd {
      if let text = reader.read(DERReader.Tag.utf8String) {
        topics.append(String(decoding: text, as: UTF8.self))
      } else if reader.read(DERReader.Tag.sequence) == nil {
        return nil
      }
    }
    return topics
  }
}

extension Certificate {
  /// The permissions of an APNs client certificate.
  package struct APNsPermissions: Sendable, Equatable {
    /// The app, from the subject's UID.
    package let bundleID: String
    package let development: Bool
    package let production: Bool
    package let voip: Bool
    /// The certificate's list, or the bundle id alone when it has none.
    package let topics: [String]
    /// Whether the certificate lists its topics, in which case each push must name one.
    package let requiresTopic: Bool
  }

  /// The permissions of this certificate at APNs; `nil` when it is not an APNs certificate: no UID,
  /// or neither environment.
  package var apnsPermissions: APNsPermissions? {
    guard let bundleID = userID else { return nil }
    let development = extensionValue(APNsExtension.development) != nil
    let production = extensionValue(APNsExtension.production) != nil
    guard development || production else { return nil }
    let listed = extensionValue(APNsExtension.topics).flatMap(APNsExtension.decode(topics:))
    return APNsPermissions(
      bundleID: bundleID, development: development, production: production,
      voip: extensionValue(APNsExtension.voip) != nil,
      topics: listed ?? [bundleID], requiresTopic: listed != nil)
  }
}
