import Wire

/// One page of a hub's installations: Belfry's answer to `GET /{hub}/installations`. The token of
/// the next page is in the header `x-ms-continuationtoken`.
package enum InstallationList {
  /// The query parameters that narrow the list.
  package enum Parameter {
    package static let tag = "tag"
    package static let user = "user"
    /// As in an installation: `apns`.
    package static let platform = "platform"
    /// `true` for those whose push channel is dead, `false` for the others.
    package static let expired = "expired"
  }

  /// `{"installations":[…]}`
  package static func json(_ page: [Installation]) -> [UInt8] {
    var out = Array(#"{"installations":["#.utf8)
    for (index, installation) in page.enumerated() {
      if index > 0 { out.append(UInt8(ascii: ",")) }
      out.append(contentsOf: installation.hubJSON)
    }
    out.append(contentsOf: "]}".utf8)
    return out
  }

  /// Reads the reply.
  package static func decode(
    _ json: some Collection<UInt8>
  ) throws(WireFormatError) -> [Installation] {
    guard case .array(let items)? = try JSONValue.parse(json)["installations"] else {
      throw WireFormatError("The reply is no list of installations.")
    }
    var page: [Installation] = []
    page.reserveCapacity(items.count)
    for item in items { page.append(try Installation.decode(item)) }
    return page
  }
}
