/// The connections that a gateway shares with others under the same credential, and how much they
/// carry: what is sent, slowed and paused together.
package struct GatewayPool: Sendable {
  /// The same for gateways that share connections.
  package let id: ObjectIdentifier
  /// Pushes that the connections can have under way at once; rises and falls with them.
  package let capacity: Int

  package init(id: ObjectIdentifier, capacity: Int) {
    self.id = id
    self.capacity = capacity
  }
}
