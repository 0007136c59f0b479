/// The hub's use cases, one call for each operation of the protocol; the layers above only
/// translate to and from HTTP or the command line. Its parts are in `HubService+….swift`.
///
/// Every call throws ``HubFailure`` with the status and text of docs/protocol/rest.md, section 1.6;
/// a failure of the store becomes 503.
package struct HubService: Sendable {
  package let store: any HubStore
  package let directory: HubDirectory
  package let dispatcher: Dispatcher
  package let clock: HubClock
  package let random: HubRandom
  package let limits: HubLimits
  package let callsUnderWay = CallsUnderWay()
  let testSends: CallMeter
  /// Limits probes of credentials: each costs the push service a connection, and may count against
  /// the account there.
  let probes: CallMeter
  /// The subscribers to the progress of notifications.
  package let progressFeeds: ProgressFeeds
  /// Validates credentials; `nil` accepts every credential.
  package let gateways: (any GatewayDirectory)?
  /// Runs imports and exports; `nil` leaves them for another process.
  package private(set) var jobs: (any JobScheduler)?

  package init(
    store: any HubStore, directory: HubDirectory, dispatcher: Dispatcher, clock: HubClock,
    random: HubRandom, limits: HubLimits = .extended, gateways: (any GatewayDirectory)? = nil,
    jobs: (any JobScheduler)? = nil
  ) {
    self.store = store
    self.directory = directory
    self.dispatcher = dispatcher
    self.clock = clock
    self.random = random
    self.limits = limits
    progressFeeds = ProgressFeeds(clock: clock)
    testSends = CallMeter(
      perMinute: limits.testSendsPerMinute, of: dispatcher.nodes,
      "test sends a minute; leave ?test out to send for real")
    probes = CallMeter(
      perMinute: 20, of: dispatcher.nodes,
      "probes of credentials a minute; the push service's own answer changes no faster")
    self.gateways = gateways
    self.jobs = jobs
  }

  /// The same service, with a scheduler for its jobs.
  package func running(jobs: any JobScheduler) -> HubService {
    var service = self
    service.jobs = jobs
    return service
  }
}
