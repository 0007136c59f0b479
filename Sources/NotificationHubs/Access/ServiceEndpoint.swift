/// The address of a namespace: the host that serves its hubs.
public struct ServiceEndpoint: Hashable, Sendable, CustomStringConvertible {
  /// The Azure clouds, by the suffix of their host names.
  public struct Cloud: Hashable, Sendable {
    /// The part of the host name that follows the namespace's name and a dot.
    public let suffix: String
    /// A cloud with this host name suffix.
    public init(suffix: String) { self.suffix = suffix }
    /// Azure's public cloud.
    public static let `public` = Cloud(suffix: "servicebus.windows.net")
    /// Azure China.
    public static let china = Cloud(suffix: "servicebus.chinacloudapi.cn")
    /// Azure for US government.
    public static let usGovernment = Cloud(suffix: "servicebus.usgovcloudapi.net")
    /// Azure Germany.
    public static let germany = Cloud(suffix: "servicebus.cloudapi.de")
  }

  /// The host name in lower case, or an IP address; an IPv6 address is in brackets.
  public let host: String
  /// The port; `nil` for the scheme's default.
  public let port: Int?
  /// Whether connections use TLS.
  public let usesTLS: Bool

  /// Creates an endpoint; the host is lower-cased.
  ///
  /// - Parameters:
  ///   - host: A host name or an address, without scheme and port.
  ///   - port: 1 to 65535, or `nil` for the scheme's default.
  ///   - usesTLS: Whether connections use TLS.
  public init(host: String, port: Int? = nil, usesTLS: Bool = true) {
    self.host = host.lowercased()
    self.port = port
    self.usesTLS = usesTLS
  }

  /// The endpoint of a namespace in one of Azure's clouds.
  public init(namespace: String, cloud: Cloud = .public) {
    self.init(host: "\(namespace).\(cloud.suffix)")
  }

  /// Parses the `Endpoint` part of a connection string: `sb://host[:port]/`.
  ///
  /// `sb` and `https` mean HTTPS, `http` means plain HTTP. `sb` also means plain HTTP if the host
  /// is a loopback address (`localhost`, `*.localhost`, `127.…`, `[::1]`) and a port is given, so
  /// that a hub on the same machine needs no certificate; write `https` for TLS there.
  ///
  /// - Returns: `nil` if the text has another form.
  public init?(parsing text: String) {
    guard let colon = text.firstRange(of: "://") else { return nil }
    let scheme = text[..<colon.lowerBound].lowercased()
    var authority = text[colon.upperBound...]
    while authority.last == "/" { authority.removeLast() }
    let hostEnd: Substring.Index
    if authority.first == "[" {
      guard let bracket = authority.firstIndex(of: "]") else { return nil }
      hostEnd = authority.index(after: bracket)
    } else {
      hostEnd = authority.firstIndex(of: ":") ?? authority.endIndex
    }
    let host = authority[..<hostEnd].lowercased()
    guard !host.isEmpty, host.utf8.allSatisfy(Self.isHostByte) else { return nil }
    var port: Int?
    if hostEnd < authority.endIndex {
      let digits = authority[hostEnd...].dropFirst()
      guard authority[hostEnd] == ":", let number = Int(digits), (1...65_535).contains(number)
      else { return nil }
      port = number
    }
    switch scheme {
    case "https": self.init(host: host, port: port, usesTLS: true)
    case "http": self.init(host: host, port: port, usesTLS: false)
    case "sb":
      self.init(host: host, port: port, usesTLS: port == nil || !Self.isLoopback(host))
    default: return nil
    }
  }

  private static func isHostByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "["),
      UInt8(ascii: "]"), UInt8(ascii: ":"):
      true
    default: false
    }
  }

  private static func isLoopback(_ host: String) -> Bool {
    if host == "localhost" || host.hasSuffix(".localhost") || host == "[::1]" { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
  }

  private var authority: String { port.map { "\(host):\($0)" } ?? host }

  /// The base URL of every request: `https://host[:port]`, without a trailing slash.
  public var url: String { (usesTLS ? "https://" : "http://") + authority }

  /// The `Endpoint` part of a connection string, with its trailing slash.
  public var description: String {
    // `sb` wherever it parses back to the same endpoint: other clients expect it.
    let short = "sb://\(authority)/"
    return ServiceEndpoint(parsing: short) == self ? short : url + "/"
  }

  /// The resource that a token for a hub is signed for: scheme, host and hub in lower case. The
  /// port is left out, as the official clients do; servers do not compare it (docs/protocol/sas.md,
  /// sections 2.2 and 4.1).
  package func resource(hub: String) -> String {
    "\(usesTLS ? "https" : "http")://\(host)/\(hub.lowercased())"
  }
}
