/// How a hub serves HTTPS beside HTTP.
struct HTTPSOptions: Sendable {
  /// 0 picks a free one.
  var port: UInt16
  var source: CertificateSource
}

extension HTTPSOptions {
  /// Reads the settings; `nil` when none of them asks for HTTPS.
  ///
  /// - Throws: ``ConfigurationError`` for settings that contradict each other, ``CommandFailure``
  ///   when the authority of `tlsSelfSigned` is unusable.
  init?(_ configuration: Configuration, data: DataDirectory) throws {
    let certificate = configuration.text(.tlsCertificate)
    let key = configuration.text(.tlsKey)
    let isSelfSigned = configuration.flag(.tlsSelfSigned)
    port = UInt16(clamping: configuration.integer(.tlsPort))
    switch (certificate, key, isSelfSigned) {
    case (nil, nil, false):
      if configuration.entries[Setting.tlsPort.key]?.origin == .standard { return nil }
      throw ConfigurationError(
        "'tlsPort' is set, but no certificate: name tlsCertificate and tlsKey, or set tlsSelfSigned"
      )
    case (nil, nil, true):
      let authority = try OwnAuthority(
        in: data,
        names: [configuration.text(.address) ?? "127.0.0.1"] + configuration.list(.publicNames))
      source = .issued { try authority.issue(at: $0) }
    case (let certificate?, let key?, false):
      source = .files(CertificateFiles(certificate: certificate, key: key))
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
