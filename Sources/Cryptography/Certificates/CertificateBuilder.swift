import COpenSSL
import Foundation
import Wire

/// Builds a certificate and signs it.
struct CertificateBuilder {
  var commonName: String
  var notBefore: Date
  var notAfter: Date
  /// `nil` makes an authority.
  var leaf: CertificateAuthority.LeafRequest?
  /// The domains that an authority is limited to; `nil` for no limit.
  var permittedDomains: [String]?

  init(commonName: String, notBefore: Date, notAfter: Date) {
    (self.commonName, self.notBefore, self.notAfter) = (commonName, notBefore, notAfter)
  }

  /// - Parameter issuer: `nil` for a self-signed certificate.
  func signed(
    subjectKey: P256PrivateKey, issuer: Certificate?, issuerKey: P256PrivateKey
  ) throws(CryptographyError) -> Certificate {
    guard let pointer = X509_new() else { throw .engine("make a certificate") }
    let draft = Draft(pointer: pointer)
    defer { OpenSSLErrors.drain() }

    guard X509_set_version(pointer, 2) == 1,
      X509_set_pubkey(pointer, subjectKey.handle.pointer) == 1,
      ASN1_TIME_set(X509_getm_notBefore(pointer), Self.seconds(notBefore)) != nil,
      ASN1_TIME_set(X509_getm_notAfter(pointer), Self.seconds(notAfter)) != nil
    else { throw .engine("make a certificate") }
    try setSerial(pointer)
    try setNames(pointer, issuer: issuer)
    try addExtensions(pointer, issuer: issuer?.pointer ?? pointer)
    guard X509_sign(pointer, issuerKey.handle.pointer, EVP_sha256()) > 0 else {
      throw .engine("sign a certificate")
    }
    return try Certificate(owning: draft.take())
  }

  private static func seconds(_ date: Date) -> time_t {
    time_t(clamping: Int64(date.timeIntervalSince1970.rounded(.down)))
  }

  private func setSerial(_ certificate: OpaquePointer) throws(CryptographyError) {
    var serial = try SecureRandom.bytes(16)
    serial[0] = serial[0] & 0x7F | 0x40
    guard let number = BN_bin2bn(serial, Int32(serial.count), nil) else {
      throw .engine("make a serial number")
    }
    defer { BN_free(number) }
    guard BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nil else {
      throw .engine("make a serial number")
    }
  }

  private func setNames(
    _ certificate: OpaquePointer, issuer: Certificate?
  ) throws(CryptographyError) {
    let name = X509_get_subject_name(certificate)
    var entries = [(NID_commonName, commonName)]
    if let userID = leaf?.userID { entries.append((NID_userId, userID)) }
    for (kind, text) in entries {
      guard
        X509_NAME_add_entry_by_NID(
          name, kind, belfry_utf8_string_kind(), text, Int32(clamping: text.utf8.count), -1, 0) == 1
      else { throw .engine("name a certificate '\(text)'") }
    }
    let issuerName = issuer.map { X509_get_subject_name($0.pointer) } ?? name
    guard X509_set_issuer_name(certificate, issuerName) == 1 else {
      throw .engine("name a certificate's issuer")
    }
  }

  private func addExtensions(
    _ certificate: OpaquePointer, issuer: OpaquePointer
  ) throws(CryptographyError) {
    var extensions = [(NID_subject_key_identifier, "hash")]
    if let leaf {
      var uses: [String] = []
      if leaf.serverAuthentication { uses.append("serverAuth") }
      if leaf.clientAuthentication { uses.append("clientAuth") }
      extensions += [
        (NID_basic_constraints, "critical,CA:FALSE"),
        (NID_key_usage, "critical,digitalSignature"),
        (NID_authority_key_identifier, "keyid:always"),
      ]
      if !uses.isEmpty { extensions.append((NID_ext_key_usage, uses.joined(separator: ","))) }
      let names = try alternativeNames(leaf)
      if !names.isEmpty { extensions.append((NID_subject_alt_name, names)) }
    } else {
      extensions += [
        (NID_basic_constraints, "critical,CA:TRUE"),
        (NID_key_usage, "critical,keyCertSign,cRLSign"),
      ]
      if let permittedDomains {
        extensions.append((NID_name_constraints, try Self.constraints(permittedDomains)))
      }
    }
    var context = X509V3_CTX()
    X509V3_set_ctx(&context, issuer, certificate, nil, nil, 0)
    for (kind, value) in extensions {
      guard let made = X509V3_EXT_conf_nid(nil, &context, kind, value) else {
        throw .engine("make the certificate extension '\(value)'")
      }
      defer { X509_EXTENSION_free(made) }
      guard X509_add_ext(certificate, made, -1) == 1 else {
        throw .engine("add the certificate extension '\(value)'")
      }
    }
    try addAPNsExtensions(certificate)
  }

  private func addAPNsExtensions(_ certificate: OpaquePointer) throws(CryptographyError) {
    guard let leaf else { return }
    let null: [UInt8] = [0x05, 0x00]
    var extensions = leaf.apnsExtensions.map { ($0, null) }
    if let topics = leaf.topics {
      extensions.append((APNsExtension.topics, APNsExtension.encode(topics: topics)))
    }
    for (identifier, value) in extensions {
      let data = ASN1_OCTET_STRING_new()
      defer { ASN1_OCTET_STRING_free(data) }
      let object = OBJ_txt2obj(identifier, 1)
      defer { ASN1_OBJECT_free(object) }
      guard let object, ASN1_OCTET_STRING_set(data, value, Int32(clamping: value.count)) == 1,
        let made = X509_EXTENSION_create_by_OBJ(nil, object, 0, data)
      else { throw .engine("make the certificate extension '\(identifier)'") }
      defer { X509_EXTENSION_free(made) }
      guard X509_add_ext(certificate, made, -1) == 1 else {
        throw .engine("add the certificate extension '\(identifier)'")
      }
    }
  }

  /// Permits these domains and this machine, in OpenSSL's own notation.
  private static func constraints(_ domains: [String]) throws(CryptographyError) -> String {
    for domain in domains {
      guard !domain.isEmpty, domain.utf8.allSatisfy({ isNameCharacter($0) }) else {
        throw CryptographyError(.malformed, "'\(domain)' is not a domain.")
      }
    }
    let names = ["localhost"] + domains
    let networks = ["127.0.0.0/255.0.0.0", "::1/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]
    return
      (["critical"] + names.map { "permitted;DNS:" + $0 }
      + networks.map { "permitted;IP:" + $0 }).joined(separator: ",")
  }

  /// The names in OpenSSL's own notation; characters that could end a name are excluded.
  private func alternativeNames(
    _ leaf: CertificateAuthority.LeafRequest
  ) throws(CryptographyError) -> String {
    for name in leaf.dnsNames {
      guard !name.isEmpty, name.utf8.allSatisfy({ Self.isNameCharacter($0) }) else {
        throw CryptographyError(.malformed, "'\(name)' is not a host name.")
      }
    }
    for address in leaf.ipAddresses {
      guard !address.isEmpty, address.allSatisfy({ $0.isHexDigit || ".:".contains($0) }) else {
        throw CryptographyError(.malformed, "'\(address)' is not an IP address.")
      }
    }
    return (leaf.dnsNames.map { "DNS:" + $0 } + leaf.ipAddresses.map { "IP:" + $0 })
      .joined(separator: ",")
  }

  private static func isNameCharacter(_ byte: UInt8) -> Bool {
    byte.isBase64URL || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "*")
  }

  /// Frees an unfinished certificate.
  private final class Draft {
    private var pointer: OpaquePointer?
    init(pointer: OpaquePointer) { self.pointer = pointer }
    deinit { X509_free(pointer) }
    func take() -> OpaquePointer {
      // Called once, by the only caller, after which nothing is left to free.
      defer { pointer = nil }
      return pointer!
    }
  }
}
