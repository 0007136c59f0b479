/// How much the dispatcher holds and how long it waits. The numbers bound its memory: a target in
/// flight costs about 400 bytes with its handle, request and result.
package struct DispatchLimits: Sendable {
  /// Targets of one page, at most.
  package var pageSize = 1000
  /// Pages of one notification that are not recorded yet, and those of all notifications of a hub
  /// to one push service together; what a crash may repeat at most. Where connections carry more
  /// than ``laneTargets``, so many more.
  package var pagesPerNotification = 8
  /// Targets of all pages together. No hub gets more than half of it.
  package var targets = 64_000
  /// Targets under way to one push service of one hub, where its gateway does not say how many its
  /// connections carry.
  package var laneTargets = 4_000
  /// Targets that may wait in memory for a full lane before nothing more is read for it; four times
  /// as many where notifications come that have not been looked at.
  package var laneBacklog = 2_000
  /// Retries under way, of all notifications. No lane gets more than half of it.
  package var retryTargets = 8_000
  /// How long a full lane may go without an answer before what waits for it in memory becomes
  /// retry rows, in seconds.
  package var stall = 15.0
  /// How long a notification lives in the hub, in seconds (spec `pns/README.md` 3, rule 1).
  package var window = 1_800.0

  /// Which outcomes are kept device by device.
  package var keeping = OutcomeKeeping.failures

  /// The share of condemned handles above which none is removed; see `DeadHandleGuard`. 1 never stops.
  package var deadHandleShare = 0.3

  package init() {}
}
