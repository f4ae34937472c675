# SPDX-License-Identifier: Apache-2.0
"""examples/tutorial/10_four_processes.cpp on two ranks in PyTorch: torchrun --nproc-per-node 2 images_on_two_ranks.py"""
import torch
import torch.distributed as dist
from digits import digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(1)
images, targets = (torch.from_numpy(array) for array in digits(4000))
test_images, test_targets = (torch.from_numpy(array) for array in digits(1000, seed=2))
training = TensorDataset(images.permute(0, 3, 1, 2), targets)
sampler = DistributedSampler(training)
loader = DataLoader(training, batch_size=25, sampler=sampler)
model = DistributedDataParallel(
    nn.Sequential(
        nn.Conv2d(1, 8, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 12 * 12, 10),
    )
)
loss_function = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

for epoch in range(3):
    sampler.set_epoch(epoch)
    for batch, answers in loader:
        optimizer.zero_grad()
        loss_function(model(batch), answers).backward()
        optimizer.step()
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "digits.pt")
    with torch.no_grad():
        outputs = model.module(test_images.permute(0, 3, 1, 2))
    right = (outputs.argmax(1) == test_targets).float().mean()
    print(f"{dist.get_world_size()} ranks: test accuracy {100 * right:.1f} %")
dist.destroy_process_group()
