import HTTP2

/// TEMP
struct WebPushStandIn: StandIn {
  struct Reading: Sendable {}
  var service: PushService { .webpush }
  func read(_ request: HTTP2ServerRequest) -> Reading { Reading() }
  func subject(_ reading: Reading, in state: EmulatorState) -> ServiceSubject {
    ServiceSubject(service: .webpush)
  }
  func answer(
    _ reading: Reading, in state: inout EmulatorState, slot: Int, now: Int64
  ) -> ServiceAnswer { ServiceAnswer(.init(status: 404)) }
  func oversized(_ reading: Reading, in state: inout EmulatorState) -> ServiceAnswer {
    ServiceAnswer(.init(status: 413))
  }
  func response(
    to fault: FaultAction.Reply, _ reading: Reading, in state: inout EmulatorState
  ) -> (HTTP2ServerResponse, reason: String?) { (.init(status: fault.status), nil) }
}
