/// What happens in a life from outside. The arguments of each stand beside it; times are in
/// milliseconds, `hub`, `device`, `handle`, `user` and `machine` count from 0, and `line` is the id
/// of an earlier line of the plan.
package enum Act: String, CaseIterable, Sendable {
  // What clients do.
  /// hub, device, handle, tags (a bit for each), user (0 is nobody), template (0 is none)
  case put
  /// hub, device, tags
  case patch
  /// hub, device
  case delete
  /// hub, handle, tags: a registration
  case register
  /// line (of a `register`)
  case unregister
  /// hub, kind (0 APNs, 1 FCM, 2 template), expression, 1 without a key for repeats
  case send
  /// hub, handle
  case direct
  /// hub, first handle, count
  case batch
  /// hub, kind, expression, delay
  case schedule
  /// line (of a `schedule`)
  case cancel
  /// line (of a send of any kind): the same again with its key
  case again
  /// line (of a send of any kind)
  case abort
  /// hub, platform (0 APNs, 1 FCM), state (0 right, 1 wrong, 2 removed, 3 another right one)
  case credential
  /// hub
  case deleteHub
  /// hub
  case createHub
  /// hub, user
  case erase
  /// hub, subject (0 a list of devices, 1 statistics, 2 notifications, 3 explain, 4 hubs)
  case look

  // What goes wrong with processes and machines.
  /// machine, time until another process starts
  case kill
  /// machine, time until another process starts: with notice, as an upgrade does
  case stop
  /// machine, length
  case pause
  /// machine, length: its steady clock stands still as well
  case suspend
  /// machine (-1 the database), thousandths of a second: somebody sets the time of day
  case step
  // What goes wrong with the database and the way to it.
  /// machine, length, ways (0 both, 1 only questions are lost, 2 only answers)
  case cut
  /// machine, call (of ``StoreCalls``), which of them from now on, 1 when the answer is lost
  case lose
  /// length, how many of a thousand answers are lost
  case losses
  /// length: it takes connections and answers nothing
  case hang
  /// length, commits lost where it is not synchronous
  case failover
  /// length, error (of ``StoreCalls/errors``)
  case refuse
  // What goes wrong with a push service: platform first, as in `credential`.
  /// platform, length, seconds of `Retry-After` (0 names none)
  case throttle
  /// platform, length, status, seconds of `Retry-After` (0 names none)
  case fail
  /// platform, length: it answers nothing
  case silence
  /// platform, length, machine + 1 (0 all): it does not take the credential
  case forbid
  /// platform, length, machine + 1 (0 all): no connection to it comes about
  case disconnect
  /// hub, handle
  case die
  /// platform, length: it calls every handle dead
  case slander
  /// handle, new handle
  case replace
  /// platform, what befalls its next request (``ServiceFaults/Single``)
  case reset
  /// platform, reason (0 Shutdown, 1 IdleTimeout): it ends a connection in good order
  case goAway
  /// length, how (0 answers 500, 1 answers nothing, 2 is not reached): FCM's token service
  case withhold
  /// Access tokens of FCM end before their time.
  case revoke

  package var isFault: Bool {
    switch self {
    case .put, .patch, .delete, .register, .unregister, .send, .direct, .batch, .schedule, .cancel,
      .again, .abort, .credential, .deleteHub, .createHub, .erase, .look:
      false
    default: true
    }
  }

  /// Which argument is a length that a shorter history may cut; `nil` for what has none.
  package var length: Int? {
    switch self {
    case .kill, .stop, .pause, .suspend, .cut, .throttle, .fail, .silence, .forbid, .disconnect,
      .slander:
      1
    case .losses, .hang, .failover, .refuse, .withhold: 0
    default: nil
    }
  }

  /// Of faults: those that end by themselves, or that the end of a life heals.
  package static var faults: [Act] { allCases.filter(\.isFault) }
}
