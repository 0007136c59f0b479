/// What is asked for with every request (hubs, access policies, credentials), read once and kept
/// until ``HubStore/directoryVersion()`` says that it may have changed.
package actor HubDirectory {
  private let store: any HubStore

  package init(store: any HubStore) { self.store = store }
}
