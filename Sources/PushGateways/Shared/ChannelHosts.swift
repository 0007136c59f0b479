import HTTPClient

/// Which addresses given by devices may be called (spec `pns/README.md` 3, rule 7).
struct ChannelHosts: Sendable {
  /// The vendor's own, as in ``HTTPAddress/isHost(in:)``.
  let vendor: [String]
  /// Beside those, from the configuration; they may also have private addresses and other ports.
  let allowed: [String]

  init(vendor: [String], allowed: [String]) {
    self.vendor = vendor
    self.allowed = allowed.map { $0.lowercased() }
  }

  /// - Returns: The parts of the address and whether it must not lead into a private network; `nil`
  ///   when it may not be called at all.
  func check(_ url: String) -> (address: HTTPAddress, isPublicOnly: Bool)? {
    guard url.utf8.count <= 4096, let address = HTTPAddress(url), address.scheme == "https" else {
      return nil
    }
    if address.isHost(in: allowed) { return (address, false) }
    guard address.isHost(in: vendor), address.port == 443 else { return nil }
    return (address, true)
  }
}
