/// Carries accepted notifications to the push services, page by page.
package actor Dispatcher {
  private let store: any HubStore
  private let gateways: any GatewayDirectory
  private let clock: HubClock

  package init(store: any HubStore, gateways: any GatewayDirectory, clock: HubClock) {
    self.store = store
    self.gateways = gateways
    self.clock = clock
  }
}
