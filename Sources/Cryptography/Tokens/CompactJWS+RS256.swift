import Wire

extension CompactJWS {
  /// True when the header says `RS256` and the signature is this key's.
  package func verifies(with key: RSAPublicKey) -> Bool {
    header.string("alg") == "RS256" && key.verifies(signature, for: signingInput)
  }

  /// Makes an RS256 token.
  /// - Parameters:
  ///   - header: A JSON object in UTF-8, with `"alg":"RS256"`; taken as it is.
  ///   - claims: A JSON object in UTF-8; taken as it is.
  package static func sign(
    header: [UInt8], claims: [UInt8], with key: RSAPrivateKey
  ) throws(CryptographyError) -> String {
    let input = Base64URL.encode(header) + "." + Base64URL.encode(claims)
    return input + "." + Base64URL.encode(try key.signature(for: Array(input.utf8)))
  }
}
