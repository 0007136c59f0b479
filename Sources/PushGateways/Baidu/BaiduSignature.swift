import Cryptography
import Wire

/// The signature of a request to Baidu Cloud Push (spec `pns/baidu.md` section 2).
enum BaiduSignature {
  /// - Parameters:
  ///   - url: Without query.
  ///   - fields: Raw values, without `sign`.
  static func sign(
    method: String, url: String, fields: [(name: String, value: String)], secret: String
  ) -> String {
    let sorted = fields.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    let base = method + url + sorted.map { "\($0.name)=\($0.value)" }.joined() + secret
    // As PHP's `urlencode`.
    var encoded: [UInt8] = []
    PercentEncoding.append(base.utf8, .php, to: &encoded)
    return Hex.encode(Digest.md5(encoded))
  }
}
